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
// `late_in_a_row` that were not there in time, all for a pause: of `least_pause`, twice as long each time until one is in
// time, at most `most_pause`. A disk that stopped for a moment has more than that many late at once; one that is slow is
// late again. While reads that were late are not there the pause begins anew, until they are as old as `most_pause`: they are
// in the disk's queue, whoever waits for them.
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
        if (was_paused_ && !late_reads_are_there(now)) {
            pause(now);
            return false;
        }
        was_paused_ = false;
        under_way_.reserve(most_at_once);
        late_reads_.reserve(most_at_once);
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
            note(it, is_here, now);
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
    void pause(clock::time_point now) noexcept {
        refuses_until_ = now + pause_;
        pause_ = std::min(2 * pause_, most_pause);
        late_ = 0;
        was_paused_ = true;
    }
    void note(const read& it, bool is_here, clock::time_point now) noexcept {
        if (!is_here && late_reads_.size() < late_reads_.capacity()) late_reads_.push_back(it);
        if (it.since < refuses_until_) return; // begun before the pause: of the same moment
        if (is_here) {
            late_ = 0;
            pause_ = least_pause;
            late_reads_.clear();
        } else if (++late_ >= late_in_a_row) {
            pause(now);
        }
    }
    bool late_reads_are_there(clock::time_point now) noexcept {
        std::erase_if(late_reads_, [&](const read& it) {
            return now - it.since >= most_pause ||
                   memory_.is_resident(it.pages.begin, it.pages.bytes);
        });
        return late_reads_.empty();
    }

    cold_memory& memory_;
    std::vector<read> under_way_;
    std::vector<read> late_reads_; // since one was in time
    unsigned late_ = 0;            // in a row
    bool was_paused_ = false;      // and nothing was begun since
    clock::time_point refuses_until_{};
    std::chrono::milliseconds pause_ = least_pause; // the next one's
};

} // namespace crestdb::server
