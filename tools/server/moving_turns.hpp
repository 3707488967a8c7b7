// SPDX-License-Identifier: MIT
//
// The turns of `obase bench server --rows moving`: a server whose objects move (0) and one whose objects do not (1)
// are asked in short turns, so that both meet the same machine. A turn in which nothing moved says nothing of
// moving, and counts for neither.
#pragma once

#include "tools/server/servers.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace obase::tools {

struct moving_turns {
    std::uint64_t requests = 0; // of each server, in turns that count
    std::uint64_t moved = 0;    // objects, in these turns
    run_result of[2];           // sums over these turns
};

// Until `requests` are counted, nothing has moved for `patience`, or go_on() is false.
//   run_result ask(std::size_t which, std::uint64_t turn): `per_turn` requests to that server, while the other one is
//     stopped: its collector would take a processor from this one;
//   std::uint64_t moved(): objects that have moved since server 0 began.
// Throws what they throw.
template <class Ask, class Moved, class GoOn>
moving_turns take_moving_turns(std::uint64_t requests, std::uint64_t per_turn,
                               std::chrono::steady_clock::duration patience, const Ask& ask,
                               const Moved& moved, const GoOn& go_on) {
    using clock = std::chrono::steady_clock;
    moving_turns sum;
    auto until = clock::now() + patience;
    for (std::uint64_t turn = 0; sum.requests < requests && go_on() && clock::now() < until;
         ++turn) {
        run_result both[2];
        std::uint64_t moved_in_turn = 0;
        for (const std::size_t which : {turn % 2, 1 - turn % 2}) {
            const std::uint64_t before = which == 0 ? moved() : 0;
            both[which] = ask(which, turn);
            if (which == 0) moved_in_turn = moved() - before;
        }
        if (moved_in_turn == 0) continue;
        sum.moved += moved_in_turn;
        sum.requests += per_turn;
        until = clock::now() + patience;
        for (const std::size_t which : {0u, 1u}) {
            run_result& all = sum.of[which];
            all.seconds += both[which].seconds;
            all.cpu_seconds += both[which].cpu_seconds;
            all.io_bytes += both[which].io_bytes;
            all.latencies_us.insert(all.latencies_us.end(), both[which].latencies_us.begin(),
                                    both[which].latencies_us.end());
        }
    }
    return sum;
}

} // namespace obase::tools
