// SPDX-License-Identifier: MIT
#include "wiscsort/order/entry_sort.hpp"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>
#include <atomic>
#include <vector>

namespace wiscsort::order {

namespace {

std::atomic<std::uint64_t> ties{0};

static_assert(sizeof(entry) == sizeof(hwy::uint128_t) && alignof(entry) == alignof(hwy::uint128_t));

void sort_integers(std::span<entry> entries) {
    if (entries.size() < 2) return;
    static const hwy::Sorter sorter;
    // vqsort's uint128_t is {low, high}, as entry is.
    sorter(reinterpret_cast<hwy::uint128_t*>(entries.data()), entries.size(), hwy::SortAscending());
}

// Below this, comparing keys is cheaper than loading them anew.
constexpr std::size_t small_group = 24;

// Orders entries whose keys agree in their first `depth` bytes (or are that short). Prefixes are
// scratch here: the caller restores them.
class tie_sorter {
  public:
    explicit tie_sorter(const entry_less& less) : less_(less) {}

    void sort(std::span<entry> group, std::size_t depth) {
        // A loop over what is left to do, not a recursion: equal keys may be megabytes long.
        work_.push_back({group, depth});
        while (!work_.empty()) {
            const job next = work_.back();
            work_.pop_back();
            step(next.group, next.depth);
        }
    }

  private:
    struct job {
        std::span<entry> group;
        std::size_t depth;
    };

    std::string_view key(const entry& e) {
        return less_.order->key(less_.source, e.position(), record_, buffer_);
    }

    void step(std::span<entry> group, std::size_t depth) {
        if (group.size() < 2) return;
        const auto by_position = [](const entry& a, const entry& b) {
            return a.position() < b.position();
        };
        if (group.size() <= small_group) {
            const auto before = [&](const entry& a, const entry& b) {
                const int compared =
                    less_.order->compare_keys(less_.source, a.position(), b.position());
                return compared != 0 ? compared < 0 : a.position() < b.position();
            };
            // By insertion, which stays within its bounds also where somebody writes the mapped input and
            // comparisons contradict each other.
            for (std::size_t i = 1; i < group.size(); ++i) {
                const auto end = group.begin() + static_cast<std::ptrdiff_t>(i);
                std::rotate(std::upper_bound(group.begin(), end, *end, before), end, end + 1);
            }
            return;
        }
        // What all of them share, and the shortest.
        const std::string_view first =
            less_.order->key(less_.source, group[0].position(), first_record_, first_buffer_);
        std::size_t common = first.size(), shortest = first.size();
        for (const entry& e : group.subspan(1)) {
            const std::string_view other = key(e);
            shortest = std::min(shortest, other.size());
            common = std::min(common,
                              depth + common_prefix(other.substr(std::min(depth, other.size())),
                                                    first.substr(std::min(depth, first.size()))));
        }
        if (common == shortest) {
            // Some keys end there: they are equal, and before all others (behind, if reversed).
            const bool reverse = less_.order->reverse();
            const auto middle = std::partition(group.begin(), group.end(), [&](const entry& e) {
                return (key(e).size() == shortest) != reverse;
            });
            const auto count = static_cast<std::size_t>(middle - group.begin());
            const std::span<entry> ended = reverse ? group.subspan(count) : group.first(count);
            const std::span<entry> others = reverse ? group.first(count) : group.subspan(count);
            std::sort(ended.begin(), ended.end(), by_position);
            if (others.size() > 1) work_.push_back({others, shortest});
            return;
        }
        // Here common < shortest, so at least one more byte of every key is loaded.
        for (entry& e : group) e = make_entry(key(e), common, less_.order->reverse(), e.position());
        sort_integers(group);
        const std::size_t loaded = std::min(common + prefix_bytes, shortest);
        for_each_group(group, [&](std::span<entry> equal) { work_.push_back({equal, loaded}); });
    }

  public:
    template <class Function>
    static void for_each_group(std::span<entry> entries, Function function) {
        for (std::size_t begin = 0; begin < entries.size();) {
            std::size_t end = begin + 1;
            while (end < entries.size() && entries[end].same_prefix(entries[begin])) ++end;
            if (end - begin > 1) function(entries.subspan(begin, end - begin));
            begin = end;
        }
    }

  private:
    const entry_less& less_;
    std::string record_, buffer_, first_record_, first_buffer_;
    std::vector<job> work_;
};

} // namespace

void sort_entries(std::span<entry> entries, const entry_less& less) {
    sort_integers(entries);
    if (less.order->prefix_decides()) return;
    tie_sorter sorter(less);
    std::uint64_t resolved = 0;
    tie_sorter::for_each_group(entries, [&](std::span<entry> group) {
        const entry prefix = group[0];
        sorter.sort(group, 0);
        for (entry& e : group) {
            e.high = prefix.high;
            e.low = (prefix.low & ~entry::position_mask) | e.position();
        }
        resolved += group.size();
    });
    ties += resolved;
}

std::uint64_t ties_resolved() { return ties.load(); }

} // namespace wiscsort::order
