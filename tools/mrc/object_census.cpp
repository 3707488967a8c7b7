// SPDX-License-Identifier: MIT
#include "tools/mrc/object_census.hpp"

#include "tools/mrc/clock_cache.hpp"
#include "tools/ycsb/in_parallel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace obase::tools {
namespace {

// What one read of a record finds.
struct seen_object {
    std::uintptr_t address;
    std::uint32_t bytes;
    object_kind kind;
};

constexpr std::size_t most_on_a_path = 64; // of different objects; a tree is not that high

struct path {
    std::array<seen_object, most_on_a_path> objects;
    std::uint32_t size = 0;

    void add(const void* object, std::size_t bytes, object_kind kind) {
        const auto at = reinterpret_cast<std::uintptr_t>(object);
        for (std::uint32_t i = 0; i < size; ++i)
            if (objects[i].address == at) return;
        if (size == most_on_a_path) throw std::runtime_error("a read accesses too many objects");
        objects[size++] = {at, static_cast<std::uint32_t>(bytes), kind};
    }
};

// The key object ends with the key's text, the value object with what get() shows.
path path_of(const crestdb::store& store, std::string_view key) {
    path found;
    std::uintptr_t value = 0;
    const bool there = store.get(key, [&](std::string_view shown) {
        value = reinterpret_cast<std::uintptr_t>(shown.data());
    });
    if (!there) throw std::runtime_error("a record is not in the store");
    store.visit_path(key, [&](const void* object, std::size_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(object);
        const char* const text = static_cast<const char*>(object) + bytes - key.size();
        object_kind kind = object_kind::node;
        if (value >= begin && value < begin + bytes)
            kind = object_kind::value;
        else if (bytes >= key.size() && std::memcmp(text, key.data(), key.size()) == 0)
            kind = object_kind::key;
        found.add(object, bytes, kind);
    });
    return found;
}

} // namespace

std::string_view name_of(object_kind kind) noexcept {
    switch (kind) {
    case object_kind::key:
        return "keys";
    case object_kind::value:
        return "values";
    case object_kind::node:
        return "nodes";
    case object_kind::all:
        break;
    }
    return "all";
}

object_census::object_census(const crestdb::store& store, const record_set& records,
                             const popularity& asked, unsigned threads) {
    const std::uint64_t count = records.count();
    std::vector<path> paths;
    constexpr std::uint64_t at_once = 1 << 16; // records whose paths are in memory as they are
    std::unordered_map<std::uintptr_t, std::uint32_t> number_of;
    path_begin_.reserve(count + 1);
    path_begin_.push_back(0);
    for (std::uint64_t first = 0; first < count; first += at_once) {
        const std::uint64_t some = std::min(at_once, count - first);
        paths.assign(some, {});
        in_parallel(threads, some, [&](std::uint64_t begin, std::uint64_t end) {
            std::vector<char> buffer(records.largest_key());
            for (std::uint64_t r = begin; r < end; ++r)
                paths[r] = path_of(store, records.key(first + r, buffer));
        });
        for (std::uint64_t r = 0; r < some; ++r) {
            for (std::uint32_t i = 0; i < paths[r].size; ++i) {
                const seen_object& o = paths[r].objects[i];
                const auto [at, fresh] =
                    number_of.try_emplace(o.address, static_cast<std::uint32_t>(objects_.size()));
                if (fresh) objects_.push_back({o.address, o.bytes, o.kind, 0});
                counted_object& here = objects_[at->second];
                here.accesses += asked.probability(first + r);
                // Another record's read passes a key or a value as a node of its path.
                if (o.kind != object_kind::node) here.kind = o.kind;
                path_.push_back(at->second);
            }
            path_begin_.push_back(path_.size());
        }
    }
}

object_census::object_census(std::vector<counted_object> objects,
                             const std::vector<std::vector<std::uint32_t>>& path_of)
    : objects_(std::move(objects)) {
    path_begin_.push_back(0);
    for (const auto& one : path_of) {
        path_.insert(path_.end(), one.begin(), one.end());
        path_begin_.push_back(path_.size());
    }
}

std::uint64_t object_census::bytes_of(object_kind kind) const noexcept {
    std::uint64_t bytes = 0;
    for (const counted_object& o : objects_)
        if (counts(o, kind)) bytes += o.bytes;
    return bytes;
}

miss_ratio_curve object_census::curve_of_objects(object_kind kind) const {
    std::vector<cached_unit> units;
    for (const counted_object& o : objects_)
        if (counts(o, kind) && o.bytes != 0)
            units.push_back({static_cast<double>(o.bytes), o.accesses});
    return curve_of_hottest(std::move(units));
}

miss_ratio_curve object_census::curve_of_pages(object_kind kind, std::uint64_t page_bytes) const {
    std::unordered_map<std::uint64_t, double> accesses_of;
    for (const counted_object& o : objects_) {
        if (!counts(o, kind) || o.bytes == 0) continue;
        for (std::uintptr_t at = o.address, end = o.address + o.bytes; at < end;) {
            const std::uintptr_t next = std::min(end, (at / page_bytes + 1) * page_bytes);
            accesses_of[at / page_bytes] +=
                o.accesses * static_cast<double>(next - at) / static_cast<double>(o.bytes);
            at = next;
        }
    }
    std::vector<cached_unit> units;
    units.reserve(accesses_of.size());
    for (const auto& [page, accesses] : accesses_of)
        units.push_back({static_cast<double>(page_bytes), accesses});
    return curve_of_hottest(std::move(units));
}

// The units of object i: units[begin[i] .. begin[i + 1]), ascending.
struct object_census::page_numbers {
    std::vector<std::uint32_t> units;
    std::vector<std::uint64_t> begin{0};
    std::vector<std::uint32_t> bytes; // of each unit

    page_numbers(const std::vector<counted_object>& objects, std::uint64_t page_bytes) {
        std::unordered_map<std::uint64_t, std::uint32_t> number_of;
        for (const counted_object& o : objects) {
            if (page_bytes == 0) {
                units.push_back(static_cast<std::uint32_t>(bytes.size()));
                bytes.push_back(std::max<std::uint32_t>(o.bytes, 1));
            } else {
                const std::uint64_t last = (o.address + std::max(o.bytes, 1u) - 1) / page_bytes;
                for (std::uint64_t page = o.address / page_bytes; page <= last; ++page) {
                    const auto [at, fresh] =
                        number_of.try_emplace(page, static_cast<std::uint32_t>(bytes.size()));
                    if (fresh) bytes.push_back(static_cast<std::uint32_t>(page_bytes));
                    units.push_back(at->second);
                }
            }
            begin.push_back(units.size());
        }
    }
};

template <class Use>
void object_census::for_each_access(const popularity& asked, std::uint64_t requests,
                                    const page_numbers& pages, Use&& use) const {
    auto requested = asked.stream_of(0, 1);
    for (std::uint64_t i = 0; i < requests; ++i) {
        const std::uint64_t record = requested.next();
        for (std::uint64_t p = path_begin_[record]; p < path_begin_[record + 1]; ++p)
            use(std::span(pages.units)
                    .subspan(pages.begin[path_[p]],
                             pages.begin[path_[p] + 1] - pages.begin[path_[p]]),
                i >= requests / 2);
    }
}

miss_ratio_curve object_census::lru_curve(const popularity& asked, std::uint64_t requests,
                                          std::uint64_t page_bytes) const {
    const page_numbers pages(objects_, page_bytes);
    lru_distances cache(pages.bytes);
    for_each_access(asked, requests, pages,
                    [&](std::span<const std::uint32_t> units, bool counted) {
                        if (counted) cache.start_counting();
                        cache.access(units);
                    });
    return cache.curve();
}

double object_census::clock_hit_ratio(const popularity& asked, std::uint64_t requests,
                                      std::uint64_t page_bytes, std::uint64_t memory_bytes) const {
    const page_numbers pages(objects_, page_bytes);
    clock_cache cache(pages.bytes.size(), memory_bytes / page_bytes);
    std::uint64_t accesses = 0, hits = 0;
    for_each_access(asked, requests, pages,
                    [&](std::span<const std::uint32_t> units, bool counted) {
                        bool hit = true;
                        for (const std::uint32_t unit : units) hit = cache.access(unit) && hit;
                        accesses += counted;
                        hits += counted && hit;
                    });
    return accesses == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(accesses);
}

} // namespace obase::tools
