// SPDX-License-Identifier: MIT
#include "telemetry/recorder.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "telemetry/packed_record.hpp"

namespace obase::telemetry {

namespace {

// In a window's record a counter is its growth, a gauge its value.
struct counter {
    template <class T>
    static T within(T now, T before) {
        return now - before;
    }
};
struct gauge {
    template <class T>
    static T within(T now, T) {
        return now;
    }
};

bool holds_objects(const statistics& seen) noexcept {
    for (unsigned cls = 0; cls < seen.heap_count; ++cls)
        if (seen.heaps[cls].live_bytes != 0) return true;
    return false;
}

} // namespace

recorder::recorder(std::size_t history_windows, const char* protocol)
    : protocol_(protocol), capacity_(std::max<std::size_t>(history_windows, 1)) {
    published_.protocol = protocol;
}

void recorder::set_tiers(const policy::tier_table& tiers) noexcept {
    static_assert(statistics::max_tiers == policy::max_tiers);
    for (policy::tier_id id = 0; id < tiers.count(); ++id) heap_names_[id] = tiers[id].name;
    heap_names_[tiers.count()] = "large";
    heap_count_ = tiers.count() + 1;
    reclaimable_tiers_ = tiers.with(&policy::tier::reclaimable);
}

void recorder::end_window(const char* mode, double end_unix_seconds, bool early) {
    live.windows.add();
    statistics now;
#define OBASE_TAKE(kind, type, name, unit, help) now.name = live.name.get();
    OBASE_STATISTICS(OBASE_TAKE)
#undef OBASE_TAKE
    now.heap_count = heap_count_;
    now.reclaimable_tiers = reclaimable_tiers_;
    now.heaps = heaps_;
    now.heap_names = heap_names_;
    for (unsigned from = 0; from < now.tiers(); ++from)
        for (unsigned to = 0; to < now.tiers(); ++to)
            now.moved_between[from][to] = live.moved_between[from][to].get();
    now.mode = mode;
    now.protocol = protocol_;

    const std::lock_guard lock(mutex_);
    published_ = now;
    if (holds_objects(now)) with_objects_ = now;
    if (early) return;
    window_record record{now.windows, end_unix_seconds, now};
#define OBASE_GROWTH(kind, type, name, unit, help)                                                 \
    record.values.name = kind::within(now.name, recorded_.name);
    OBASE_STATISTICS(OBASE_GROWTH)
#undef OBASE_GROWTH
    for (unsigned from = 0; from < now.tiers(); ++from)
        for (unsigned to = 0; to < now.tiers(); ++to)
            record.values.moved_between[from][to] -= recorded_.moved_between[from][to];
    if (ring_.empty()) reference_ = record;
    std::string packed;
    try {
        packed = pack(record, reference_);
    } catch (const std::bad_alloc&) {
        return;
    }
    recorded_ = now;
    if (ring_.size() < capacity_) {
        try {
            ring_.push_back(std::move(packed));
            return;
        } catch (const std::bad_alloc&) {
            capacity_ = ring_.size(); // a shorter history is better than none
        }
    }
    if (capacity_ == 0) return;
    ring_[oldest_] = std::move(packed);
    oldest_ = (oldest_ + 1) % capacity_;
}

statistics recorder::snapshot() const {
    const std::lock_guard lock(mutex_);
    return published_;
}

statistics recorder::last_with_objects() const {
    const std::lock_guard lock(mutex_);
    return with_objects_.windows == 0 ? published_ : with_objects_;
}

std::vector<window_record> recorder::history() const {
    const std::lock_guard lock(mutex_);
    std::vector<window_record> ordered;
    ordered.reserve(ring_.size());
    for (std::size_t i = 0; i < ring_.size(); ++i) {
        ordered.push_back(unpack(ring_[(oldest_ + i) % ring_.size()], reference_));
    }
    return ordered;
}

} // namespace obase::telemetry
