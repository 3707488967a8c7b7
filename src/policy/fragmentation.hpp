// SPDX-License-Identifier: MIT
//
// fragmentation: when memory of homes is to be gathered, how much at a time, and which runs.
//
//     fragmentation control({.start = 1.3, .stop = 1.1, .share = .05});
//     if (control.wants({live_bytes, memory_bytes})) {
//         control.choose(runs, most, live, memory);     // the emptiest, in the order of addresses
//         ... move, taking work_ns of processor time ...
//         sleep(control.rest_ns(work_ns, since_the_last_rest_began_ns));
//     }
//
// As in ANCHORAGE: *fragmentation* is memory / live bytes. Above `start` (F_ub) it begins, at or below `stop` (F_lb) it
// ends, and in between it goes on as it was, so that a value near one bound does not switch it to and fro. It takes at
// most `share` (O_ub) of a processor in the long run. What it has not taken it saves, and takes later, up to `burst` of a
// processor: memory becomes free all at once, and is wanted soon. It saves what it takes to move all there is, about, and
// has that in advance for memory that is new.
//
// The emptiest runs first: each byte of memory then costs the fewest bytes of copying. A run that was in use when it
// should have moved rests, twice as long each time: hot objects come last, and what is always in use is not asked
// again and again.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace obase::policy {

struct fragmentation_limits {
    double start = 1.15;
    double stop = 1.05;
    double share = 0.1;                 // of one processor, in the long run
    double burst = 0.5;                 // likewise, while what was saved lasts
    double ns_per_byte = 5;             // of processor time, to move a byte of memory, about
    double densest = 0.85;              // runs with a larger part in use stay
    std::size_t least_bytes = 4U << 20; // of memory; below, nothing is worth a thread's time
};

struct fragmented {
    std::uint64_t live_bytes = 0;
    std::uint64_t memory_bytes = 0;
};

struct run_to_gather {
    std::uint32_t number = 0;
    std::uint32_t live_bytes = 0;
    std::uint32_t memory_bytes = 0;
};

class fragmentation {
  public:
    explicit fragmentation(fragmentation_limits limits) noexcept : limits_(limits) {}

    const fragmentation_limits& limits() const noexcept { return limits_; }
    bool active() const noexcept { return active_; }

    bool wants(fragmented now) noexcept {
        if (now.memory_bytes > most_memory_) {
            saved_ns_ += limits_.ns_per_byte * static_cast<double>(now.memory_bytes - most_memory_);
            most_memory_ = now.memory_bytes;
        }
        const double bound = active_ ? limits_.stop : limits_.start;
        active_ =
            now.memory_bytes >= limits_.least_bytes &&
            static_cast<double>(now.memory_bytes) > bound * static_cast<double>(now.live_bytes);
        return active_;
    }

    // Leaves in `runs` at most `most`: the emptiest, and no more than it takes to come down to `stop`; in the order of
    // addresses, so that what lay together does so again.
    void choose(std::vector<run_to_gather>& runs, std::size_t most, fragmented now) {
        std::erase_if(runs, [&](const run_to_gather& r) {
            return static_cast<double>(r.live_bytes) >
                       limits_.densest * static_cast<double>(r.memory_bytes) ||
                   rests(r.number);
        });
        std::sort(runs.begin(), runs.end(), [](const run_to_gather& a, const run_to_gather& b) {
            return a.live_bytes != b.live_bytes ? a.live_bytes < b.live_bytes : a.number < b.number;
        });
        const double enough = limits_.stop * static_cast<double>(now.live_bytes);
        double left = static_cast<double>(now.memory_bytes);
        std::size_t count = 0;
        while (count < std::min(most, runs.size()) && left > enough) {
            left -= static_cast<double>(runs[count].memory_bytes - runs[count].live_bytes);
            ++count;
        }
        runs.resize(count);
        std::sort(runs.begin(), runs.end(), [](const run_to_gather& a, const run_to_gather& b) {
            return a.number < b.number;
        });
    }

    // The run was in use.
    void refused(std::uint32_t number) {
        if (number >= resting_.size()) resting_.resize(number + 1);
        rest& r = resting_[number];
        r.length = static_cast<std::uint8_t>(std::clamp(2 * r.length, 1, 128));
        r.until = round_ + r.length;
    }
    // It has been refused so often that it should be moved by force. Precondition: refused() more often than moved().
    bool is_stubborn(std::uint32_t number) const noexcept {
        return number < resting_.size() && resting_[number].length >= stubborn;
    }
    void moved(std::uint32_t number) noexcept {
        if (number < resting_.size()) resting_[number].length = 0;
    }
    // It has come home because its objects were used too often (used_runs.hpp): it rests, twice as long each time, and
    // is not moved by force afterwards.
    void used_too_often(std::uint32_t number) {
        if (number >= resting_.size()) resting_.resize(number + 1);
        rest& r = resting_[number];
        r.length = 0;
        r.used = static_cast<std::uint16_t>(std::clamp(2 * r.used, shortest_rest_of_used, 2048));
        r.until = round_ + r.used;
    }
    void end_of_round() noexcept { ++round_; }
    std::uint64_t round() const noexcept { return round_; }

    // How long to do nothing after work that took so much processor time. `elapsed_ns`: since the last call.
    std::uint64_t rest_ns(std::uint64_t work_ns, std::uint64_t elapsed_ns) noexcept {
        const double share = std::max(limits_.share, 0.001);
        const auto work = static_cast<double>(work_ns);
        saved_ns_ = std::min(saved_ns_ + share * static_cast<double>(elapsed_ns) - work,
                             limits_.ns_per_byte * static_cast<double>(most_memory_));
        const double least = work * (1.0 / std::max(limits_.burst, share) - 1.0);
        return static_cast<std::uint64_t>(std::max(least, -saved_ns_ / share));
    }

  private:
    static constexpr std::uint8_t stubborn = 4; // rounds of rest: refused three times
    static constexpr int shortest_rest_of_used = 16;

    struct rest {
        std::uint64_t until = 0;
        std::uint16_t used = 0;  // the last rest for being used too often
        std::uint8_t length = 0; // for being in use
    };
    bool rests(std::uint32_t number) const noexcept {
        return number < resting_.size() && resting_[number].until > round_;
    }

    fragmentation_limits limits_;
    std::vector<rest> resting_; // by run
    std::uint64_t round_ = 0;
    double saved_ns_ = 0;           // below 0: owed
    std::uint64_t most_memory_ = 0; // that there ever was
    bool active_ = false;
};

} // namespace obase::policy
