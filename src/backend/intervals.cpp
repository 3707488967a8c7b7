// SPDX-License-Identifier: MIT
#include "backend/intervals.hpp"

#include <algorithm>
#include <limits>

namespace obase::backend {

void intervals::add(std::uintptr_t begin, std::uintptr_t end) {
    if (begin >= end) return;
    if (items_.empty()) {
        items_.push_back({begin, end});
        return;
    }
    interval& last = items_.back();
    if (sorted_ && begin >= last.begin && begin <= last.end) {
        last.end = std::max(last.end, end);
        return;
    }
    if (!sorted_ && items_.size() >= normalized_at_) {
        normalized();
        normalized_at_ = std::max(least_normalized, 2 * items_.size());
        add(begin, end);
        return;
    }
    if (begin <= last.end) sorted_ = false;
    items_.push_back({begin, end});
}

const intervals::list& intervals::normalized() const {
    if (sorted_) return items_;
    std::sort(items_.begin(), items_.end(),
              [](const interval& a, const interval& b) { return a.begin < b.begin; });
    std::size_t kept = 0;
    for (std::size_t i = 1; i < items_.size(); ++i) {
        if (items_[i].begin <= items_[kept].end) {
            items_[kept].end = std::max(items_[kept].end, items_[i].end);
        } else {
            items_[++kept] = items_[i];
        }
    }
    items_.resize(kept + 1);
    sorted_ = true;
    return items_;
}

std::size_t intervals::bytes() const {
    std::size_t sum = 0;
    for (const interval& item : normalized()) sum += item.bytes();
    return sum;
}

intervals intervals::united(const intervals& other) const {
    intervals result = *this;
    for (const interval& item : other.items()) result.add(item.begin, item.end);
    return result;
}

intervals intervals::without(const intervals& other) const {
    intervals result;
    const auto& holes = other.items();
    auto hole = holes.begin();
    for (const interval& item : normalized()) {
        std::uintptr_t from = item.begin;
        while (hole != holes.end() && hole->end <= from) ++hole;
        for (auto cut = hole; cut != holes.end() && cut->begin < item.end; ++cut) {
            result.add(from, std::min(cut->begin, item.end));
            from = std::max(from, cut->end);
        }
        result.add(from, item.end);
    }
    return result;
}

intervals intervals::common(const intervals& other) const { return without(without(other)); }

intervals intervals::rounded_in(std::size_t unit) const {
    intervals result;
    const std::uintptr_t mask = unit - 1;
    for (const interval& item : normalized()) {
        if (item.begin > std::numeric_limits<std::uintptr_t>::max() - mask) continue;
        result.add((item.begin + mask) & ~mask, item.end & ~mask);
    }
    return result;
}

intervals intervals::rounded_out(std::size_t unit) const {
    intervals result;
    const std::uintptr_t mask = unit - 1;
    for (const interval& item : normalized()) {
        result.add(item.begin & ~mask, (item.end + mask) & ~mask);
    }
    return result;
}

} // namespace obase::backend
