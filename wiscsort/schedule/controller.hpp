// SPDX-License-Identifier: MIT
//
// The thread-pool controller (the paper's D): how many threads each kind of operation gets. It begins
// with what the profile says and corrects itself: where the profile says that more threads can be
// worse, one more and one less are tried from time to time, and kept if they move more bytes.
#pragma once

#include "wiscsort/model/profile.hpp"

#include <array>
#include <cstdint>

namespace wiscsort::schedule {

// What threads do: strided or sequential reads of the input, random reads, writes, and work that
// needs no device.
enum class operation { scan, load, gather, write, compute };
constexpr std::size_t operations = 5;

class controller {
  public:
    // Seconds that a thread is busy beside each byte that the device moves for it (model::demand): such
    // threads may be more than the device has room for.
    struct own_seconds {
        double scan = 0, load = 0, gather = 0, write = 0;
    };
    // `most`: threads that the user allows. Uncontrolled, every operation gets all of them.
    controller(const model::profile& profile, unsigned most, bool controlled,
               const own_seconds& own);

    unsigned threads(operation op) const { return at(op).threads; }
    unsigned most() const { return most_; }
    bool controlled() const { return controlled_; }
    // `bytes` took `seconds` with threads(op). One thread at a time.
    void observed(operation op, std::uint64_t bytes, double seconds);

  private:
    struct state {
        unsigned threads = 1;
        bool correctable = false;
        // The best so far and its rate; a trial is a round with another number.
        unsigned best = 1;
        double best_rate = 0;
        int rounds = 0, pause = 4;
        int step = -1;
    };
    state& at(operation op) { return states_[static_cast<std::size_t>(op)]; }
    const state& at(operation op) const { return states_[static_cast<std::size_t>(op)]; }

    unsigned most_;
    bool controlled_;
    std::array<state, operations> states_;
};

} // namespace wiscsort::schedule
