// SPDX-License-Identifier: MIT
//
// backend::page_ages: for each 4 KiB page of one tier, for how many windows it has been idle; and what a
// window showed of all of them (policy/reuse_ages.hpp).
//
// A page that was touched in the window has age 0; one that the mover wrote to and that nobody touched has
// age 1, because writing brought it into memory. A page under no object has no age.
//
// Cost: a byte per page, a look at each once per window. Threads: the collector thread.
#pragma once

#include "backend/intervals.hpp"
#include "heap/size_class.hpp"
#include "os/memory.hpp"
#include "policy/reuse_ages.hpp"
#include "policy/tiers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace obase::backend {

class page_ages {
  public:
    static constexpr std::size_t page_bytes = os::page_size;
    static constexpr std::size_t pages_per_run = heap::run_bytes / page_bytes;

    // Once per window. `filled`: addresses that the mover wrote to in it. An early window makes no page older;
    // what was touched in it, or in several, counts once in the next that is not early. Throws std::bad_alloc; then
    // clear() is to follow.
    template <class Space>
    void end_window(Space& space, policy::tier_id id, const intervals& filled, bool early = false) {
        const std::uintptr_t base = address(space.range_begin(id));
        const auto page_of = [base](std::uintptr_t at) { return (at - base) / page_bytes; };
        if (!after_early_) window_.clear();
        window_.pages.fill(0);
        after_early_ = early;
        std::size_t end = 0;
        space.for_each_extent(
            id, [&](const char*, const char* last) { end = page_of(address(last) - 1) + 1; });
        if (ages_.size() < end) ages_.resize(end, absent);
        space.for_each_touched_page(id, [&](const char* begin, const char* last) {
            const std::size_t stop = std::min(page_of(address(last)), ages_.size());
            for (std::size_t page = page_of(address(begin)); page < stop; ++page) {
                if (ages_[page] <= oldest) {
                    ++window_.exposed[ages_[page]];
                    ++window_.touched[ages_[page]];
                }
                ages_[page] = touched_now;
            }
        });
        std::size_t next = 0; // first page not looked at
        space.for_each_extent(id, [&](const char* begin, const char* last) {
            // Births may have made more since the first look: those have no age before the next window.
            const std::size_t first = std::min(page_of(address(begin)), ages_.size());
            const std::size_t stop = std::min(page_of(address(last) - 1) + 1, ages_.size());
            for (; next < first; ++next) ages_[next] = absent;
            for (; next < stop; ++next) ages_[next] = aged(ages_[next], early);
        });
        ages_.resize(next);
        for (const interval& item : filled.items()) {
            const std::size_t stop = std::min(page_of(item.end - 1) + 1, ages_.size());
            for (std::size_t page = page_of(item.begin); page < stop; ++page)
                if (ages_[page] <= oldest) ages_[page] = std::min<std::uint8_t>(ages_[page], 1);
        }
        for (std::size_t page = 0; page < ages_.size(); ++page)
            if (ages_[page] != absent) ++window_.pages[age(page)];
    }

    void clear() noexcept {
        ages_.clear();
        window_.clear();
    }

    // 0 for a page that has none.
    unsigned age(std::size_t page) const noexcept {
        return page < ages_.size() && ages_[page] <= oldest ? ages_[page] : 0;
    }
    // Calls visit(begin, end, age) for maximal stretches of pages of one age in one run, in address order.
    template <class Visit>
    void for_each_stretch(std::uintptr_t base, Visit&& visit) const {
        for (std::size_t page = 0; page < ages_.size();) {
            const std::size_t first = page;
            const std::size_t stop = std::min((first | (pages_per_run - 1)) + 1, ages_.size());
            while (page < stop && ages_[page] == ages_[first]) ++page;
            if (ages_[first] != absent)
                visit(base + first * page_bytes, base + page * page_bytes, age(first));
        }
    }
    const policy::reuse_ages& window() const noexcept { return window_; }

  private:
    static constexpr std::uint8_t oldest = policy::reuse_ages::oldest;
    static constexpr std::uint8_t touched_early = 253; // since the last window that was not; age 0
    static constexpr std::uint8_t touched_now = 254;
    static constexpr std::uint8_t absent = 255;
    static_assert(oldest < touched_early);

    static std::uintptr_t address(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p);
    }
    std::uint8_t aged(std::uint8_t age, bool early) noexcept {
        if (age == touched_now) return early ? touched_early : 0;
        if (age == touched_early) return early ? touched_early : 0;
        if (age == absent) return 1;
        if (early) return age;
        ++window_.exposed[age];
        return std::min<std::uint8_t>(static_cast<std::uint8_t>(age + 1), oldest);
    }

    std::vector<std::uint8_t> ages_;
    policy::reuse_ages window_;
    bool after_early_ = false; // window_ has what early windows saw touched
};

} // namespace obase::backend
