// SPDX-License-Identifier: MIT
//
// clock_cache: which accesses hit in a cache of pages under CLOCK, the approximation of LRU that kernels
// use (F. Corbató, A paging experiment with the Multics system, 1968): a hand goes round the pages that are in;
// one that was accessed since the hand last passed is passed once more, the first that was not goes.
//
//     clock_cache cache(pages, 100);
//     cache.access(7); // false: it was not in
//     cache.access(7); // true
//
// Threads: one. Cost: amortized O(1) per access.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace obase::tools {

class clock_cache {
  public:
    // Pages have numbers below `pages`; `room` of them are in at most, 0: none ever.
    clock_cache(std::size_t pages, std::size_t room) : place_of_(pages, out), room_(room) {
        in_.reserve(room);
    }

    // True if the page was in. It is now, and was accessed.
    bool access(std::uint32_t page) {
        if (room_ == 0) return false;
        std::uint32_t& place = place_of_[page];
        if (place != out) {
            in_[place].accessed = true;
            return true;
        }
        if (in_.size() < room_) {
            place = static_cast<std::uint32_t>(in_.size());
            in_.push_back({page, false});
            return false;
        }
        while (in_[hand_].accessed) {
            in_[hand_].accessed = false;
            advance();
        }
        place_of_[in_[hand_].page] = out;
        place = hand_;
        in_[hand_] = {page, false};
        advance();
        return false;
    }

  private:
    static constexpr std::uint32_t out = UINT32_MAX;
    struct entry {
        std::uint32_t page;
        bool accessed;
    };

    void advance() noexcept { hand_ = hand_ + 1 == in_.size() ? 0 : hand_ + 1; }

    std::vector<entry> in_;
    std::vector<std::uint32_t> place_of_; // in in_
    std::size_t room_;
    std::uint32_t hand_ = 0;
};

} // namespace obase::tools
