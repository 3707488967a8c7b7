// SPDX-License-Identifier: MIT
//
// object_census: every object that reads of a store's records dereference, where it lies now, how
// large it is, and how often it is accessed when records are asked for as `popularity` says.
//
//     object_census census(store, records, asked, threads);
//     census.curve_of_objects(object_kind::all).bytes_for(.9);
//     census.curve_of_pages(object_kind::all, 4096).bytes_for(.9);
//
// An object that lies in several pages counts in each with its share of the bytes, for the static
// curves; for LRU and CLOCK an access needs all of them.
//
// The census reads every record, which a collector takes for accesses: make it when the store is
// not needed any more. Nothing may move meanwhile.
#pragma once

#include "tools/curves/miss_ratio_curve.hpp"
#include "tools/mrc/lru_distances.hpp"
#include "tools/mrc/popularity.hpp"
#include "tools/ycsb/record_set.hpp"

#include "crestdb/store.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

namespace obase::tools {

enum class object_kind : std::uint8_t { key, value, node, all };
std::string_view name_of(object_kind kind) noexcept; // "keys", ...

struct counted_object {
    std::uintptr_t address = 0;
    std::uint32_t bytes = 0;
    object_kind kind = object_kind::node;
    double accesses = 0; // per request
};

class object_census {
  public:
    object_census(const crestdb::store& store, const record_set& records, const popularity& asked,
                  unsigned threads);
    // Of objects that are known already, none twice; path_of[r] are the objects that a read of record
    // r accesses.
    object_census(std::vector<counted_object> objects,
                  const std::vector<std::vector<std::uint32_t>>& path_of);

    const std::vector<counted_object>& objects() const noexcept { return objects_; }
    std::uint64_t bytes_of(object_kind kind) const noexcept;

    miss_ratio_curve curve_of_objects(object_kind kind) const;
    miss_ratio_curve curve_of_pages(object_kind kind, std::uint64_t page_bytes) const;

    // LRU, of all kinds: `requests` drawn, of which the first half warms the cache. page_bytes 0:
    // of objects.
    miss_ratio_curve lru_curve(const popularity& asked, std::uint64_t requests,
                               std::uint64_t page_bytes) const;
    // CLOCK, of all kinds, with as many pages as fit into `memory_bytes`: the share of the accesses to objects
    // that find all of the object's pages in. As above, the first half warms the cache.
    double clock_hit_ratio(const popularity& asked, std::uint64_t requests,
                           std::uint64_t page_bytes, std::uint64_t memory_bytes) const;

  private:
    struct page_numbers;
    // use(units, counted) for each access to an object.
    template <class Use>
    void for_each_access(const popularity& asked, std::uint64_t requests, const page_numbers& pages,
                         Use&& use) const;
    bool counts(const counted_object& o, object_kind kind) const noexcept {
        return kind == object_kind::all || o.kind == kind;
    }

    std::vector<counted_object> objects_;
    // The objects of record r are path_[path_begin_[r] .. path_begin_[r + 1]).
    std::vector<std::uint32_t> path_;
    std::vector<std::uint64_t> path_begin_;
};

} // namespace obase::tools
