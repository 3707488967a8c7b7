// SPDX-License-Identifier: MIT
#include "wiscsort/order/parts.hpp"

#include "wiscsort/error.hpp"

#include <algorithm>
#include <cstring>

namespace wiscsort::order {

namespace {

// Fewer entries are left than there must be: comparisons contradicted each other.
[[noreturn]] void changed() {
    fail("an input was changed while it was sorted; the output is untouched");
}

} // namespace

sorted_parts::sorted_parts(std::vector<std::span<const entry>> parts, entry_less less)
    : less_(less) {
    for (const auto& part : parts) {
        if (part.empty()) continue;
        parts_.push_back(part);
        size_ += part.size();
    }
}

std::vector<std::uint64_t> sorted_parts::cut(std::uint64_t rank) const {
    // Windows [low, high) of where each part's cut may be. In each step the weighted median of their
    // middles is a pivot: at least a quarter of what is in the windows leaves them. The pivot itself always does, so
    // that it ends also where keys change meanwhile (the input is mapped, and somebody writes it).
    std::vector<std::uint64_t> low(parts_.size(), 0), high(parts_.size()), at(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) high[i] = parts_[i].size();
    struct middle {
        std::size_t part;
        std::uint64_t at, weight;
    };
    std::vector<middle> middles;
    for (;;) {
        middles.clear();
        std::uint64_t open = 0;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (low[i] == high[i]) continue;
            middles.push_back({i, low[i] + (high[i] - low[i]) / 2, high[i] - low[i]});
            open += high[i] - low[i];
        }
        if (open == 0) return low;
        // A heap stays within its bounds whatever the comparison says.
        const auto before_it = [&](const middle& a, const middle& b) {
            return less_(parts_[a.part][a.at], parts_[b.part][b.at]);
        };
        std::make_heap(middles.begin(), middles.end(), before_it);
        std::sort_heap(middles.begin(), middles.end(), before_it);
        std::uint64_t weight = 0;
        middle pivot = {};
        for (const middle& m : middles) {
            pivot = m;
            weight += m.weight;
            if (weight * 2 >= open) break;
        }
        const entry& pivot_entry = parts_[pivot.part][pivot.at];
        // Entries before the pivot, the pivot not counted.
        std::uint64_t before = 0;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const auto begin = parts_[i].begin();
            at[i] = static_cast<std::uint64_t>(
                std::lower_bound(begin + static_cast<std::ptrdiff_t>(low[i]),
                                 begin + static_cast<std::ptrdiff_t>(high[i]), pivot_entry, less_) -
                begin);
            before += at[i];
        }
        if (before >= rank) {
            high = at;
            if (before == rank) return at;
            high[pivot.part] = std::min(high[pivot.part], pivot.at);
        } else {
            // The pivot itself is among the first, too.
            low = at;
            low[pivot.part] = std::max(at[pivot.part], pivot.at + 1);
        }
    }
}

void sorted_parts::merge(std::uint64_t rank, std::uint64_t count, entry* out) const {
    if (count == 0) return;
    if (parts_.size() == 1) {
        std::memcpy(out, parts_[0].data() + rank, count * sizeof(entry));
        return;
    }
    std::vector<std::uint64_t> begin = cut(rank);
    if (parts_.size() == 2) {
        const entry *a = parts_[0].data() + begin[0], *a_end = parts_[0].data() + parts_[0].size();
        const entry *b = parts_[1].data() + begin[1], *b_end = parts_[1].data() + parts_[1].size();
        while (count > 0 && a != a_end && b != b_end) {
            const bool second = less_(*b, *a);
            *out++ = second ? *b : *a;
            a += !second;
            b += second;
            --count;
        }
        // One of them is at its end, or nothing is left to do.
        const entry* rest = a != a_end ? a : b;
        if (count > static_cast<std::uint64_t>(a != a_end ? a_end - a : b_end - b)) changed();
        if (count > 0) std::memcpy(out, rest, count * sizeof(entry));
        return;
    }
    const auto before = [&](std::size_t i, std::size_t j) {
        if (begin[i] == parts_[i].size()) return false;
        if (begin[j] == parts_[j].size()) return true;
        return less_(parts_[i][begin[i]], parts_[j][begin[j]]);
    };
    loser_tree tree(parts_.size(), before);
    for (; count > 0; --count) {
        const std::size_t i = tree.winner();
        if (begin[i] == parts_[i].size()) changed();
        *out++ = parts_[i][begin[i]++];
        tree.replay();
    }
}

} // namespace wiscsort::order
