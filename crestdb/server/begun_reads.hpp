// SPDX-License-Identifier: MIT
//
// server::begun_reads: reads of cold data that an I/O thread has begun and does not wait for.
//
//     begun_reads reads(memory);
//     if (reads.begin(pages, client, now)) ...               // goes on with other clients
//     reads.poll(now, [&](std::uint64_t client, bool is_here) { ... });   // now and then
//
// The kernel reads without a thread that waits (MADV_WILLNEED), and says nothing at the end; so it is asked, by
// mincore(), which costs less than to wake a thread that waits. What is not there after `patience`, because the disk is slow,
// has an error, or the kernel found no page for it, is left to a thread (cold_reader.hpp), which also learns why. So
// is what comes while `most_at_once` are under way, for the kernel waits itself when a disk's queue is full; and, after
// `late_in_a_row` that were not there in time, all for `least_pause`, twice as long each time until one is in time, at most
// `most_pause`: a disk that stopped for a moment has more than that many late at once, one that is slow is late again.
//
// Threads: one's own.
#pragma once

#include "crestdb/server/cold_memory.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace crestdb::server {

// Those of one request: one after the other, each of what could not be seen before the last one was there. Then, and
// when one was late, a thread reads what there is.
class begun_for_request {
  public:
    static constexpr unsigned most = 4;

    bool any() const noexcept { return count_ != 0; }
    // For cold_reader::look(): the pages of the last one; null: no more are begun.
    const page_range* last() const noexcept { return count_ < most ? &pages_ : nullptr; }
    void add(const page_range& pages) noexcept {
        ++count_;
        pages_ = pages;
    }
    void was_late() noexcept { count_ = most; }

  private:
    unsigned count_ = 0;
    page_range pages_{nullptr, 0};
};

class begun_reads {
  public:
    using clock = std::chrono::steady_clock;
    // After that long a thread may as well wait.
    static constexpr std::chrono::microseconds patience{1000};
    static constexpr std::size_t most_at_once = 64;
    static constexpr unsigned late_in_a_row = 8;
    static constexpr std::chrono::milliseconds least_pause{8}, most_pause{1024};

    explicit begun_reads(cold_memory& memory) noexcept : memory_(memory) {}

    // False: not begun. Throws std::bad_alloc.
    bool begin(const page_range& pages, std::uint64_t client, clock::time_point now) {
        if (under_way_.size() >= most_at_once || now < refuses_until_) return false;
        under_way_.reserve(most_at_once);
        if (!memory_.begin_read(pages.begin, pages.bytes)) return false;
        under_way_.push_back({pages, client, now});
        return true;
    }

    // ended(client, is_here) for each that has ended, or has not in time. It may begin others.
    template <class Ended>
    void poll(clock::time_point now, Ended&& ended) {
        for (std::size_t i = 0; i < under_way_.size();) {
            const read it = under_way_[i];
            const bool is_here = memory_.is_resident(it.pages.begin, it.pages.bytes);
            if (!is_here && now - it.since < patience) {
                ++i;
                continue;
            }
            under_way_[i] = under_way_.back();
            under_way_.pop_back();
            if (is_here) {
                late_ = 0;
                pause_ = least_pause;
            } else if (now >= refuses_until_ && ++late_ >= late_in_a_row) {
                // What is late in the pause was begun before it, in the same moment.
                late_ = 0;
                refuses_until_ = now + pause_;
                pause_ = std::min(2 * pause_, most_pause);
            }
            ended(it.client, is_here);
        }
    }

    bool empty() const noexcept { return under_way_.empty(); }

  private:
    struct read {
        page_range pages;
        std::uint64_t client;
        clock::time_point since;
    };
    cold_memory& memory_;
    std::vector<read> under_way_;
    unsigned late_ = 0; // in a row
    clock::time_point refuses_until_{};
    std::chrono::milliseconds pause_ = least_pause; // the next one's
};

} // namespace crestdb::server
