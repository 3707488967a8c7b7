// SPDX-License-Identifier: MIT
#include "wiscsort/order/parts.hpp"

#include <algorithm>
#include <cstring>

namespace wiscsort::order {

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
    // middles is a pivot: at least a quarter of what is in the windows leaves them.
    std::vector<std::uint64_t> low(parts_.size(), 0), high(parts_.size()), at(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) high[i] = parts_[i].size();
    std::vector<std::pair<const entry*, std::uint64_t>> middles;
    for (;;) {
        middles.clear();
        std::uint64_t open = 0;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            if (low[i] == high[i]) continue;
            middles.emplace_back(&parts_[i][low[i] + (high[i] - low[i]) / 2], high[i] - low[i]);
            open += high[i] - low[i];
        }
        if (open == 0) return low;
        std::sort(middles.begin(), middles.end(),
                  [&](const auto& a, const auto& b) { return less_(*a.first, *b.first); });
        std::uint64_t weight = 0;
        const entry* pivot = nullptr;
        for (const auto& [middle, size] : middles) {
            pivot = middle;
            weight += size;
            if (weight * 2 >= open) break;
        }
        // Entries before the pivot, the pivot not counted.
        std::uint64_t before = 0;
        for (std::size_t i = 0; i < parts_.size(); ++i) {
            const auto begin = parts_[i].begin();
            at[i] = static_cast<std::uint64_t>(
                std::lower_bound(begin + static_cast<std::ptrdiff_t>(low[i]),
                                 begin + static_cast<std::ptrdiff_t>(high[i]), *pivot, less_) -
                begin);
            before += at[i];
        }
        if (before >= rank) {
            high = at;
            if (before == rank) return at;
        } else {
            // The pivot itself is among the first, too.
            for (std::size_t i = 0; i < parts_.size(); ++i) {
                low[i] = at[i];
                if (at[i] < parts_[i].size() && &parts_[i][at[i]] == pivot) ++low[i];
            }
        }
    }
}

void sorted_parts::merge(std::uint64_t rank, std::uint64_t count, entry* out) const {
    if (count == 0) return;
    std::vector<std::uint64_t> begin = cut(rank);
    if (parts_.size() == 1) {
        std::memcpy(out, parts_[0].data() + begin[0], count * sizeof(entry));
        return;
    }
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
        *out++ = parts_[i][begin[i]++];
        tree.replay();
    }
}

} // namespace wiscsort::order
