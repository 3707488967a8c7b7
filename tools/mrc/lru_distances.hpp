// SPDX-License-Identifier: MIT
//
// lru_distances: the miss-ratio curve of an LRU cache of every size at once, from one pass over the
// accesses (R. Mattson et al., Evaluation techniques for storage hierarchies, IBM Systems Journal
// 1970): an access hits in every cache that is larger than the bytes used since the unit was last
// accessed, its own included.
//
//     lru_distances cache({64, 64, 128});
//     for (auto unit : warm_up) cache.access(unit);
//     cache.start_counting();
//     for (auto unit : rest) cache.access(unit);
//     cache.curve().bytes_for(.9);
//
// What is counted and was never accessed before is a miss at every size, so the curve may end below 1.
//
// Cost: O(log n) per access; 16 bytes per unit and time stamp. Distances are kept to 1/65536 of the
// bytes of all units, rounded up.
#pragma once

#include "tools/curves/miss_ratio_curve.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace obase::tools {

class lru_distances {
  public:
    // The bytes of each unit, > 0.
    explicit lru_distances(std::vector<std::uint32_t> bytes_of_unit);

    void access(std::uint32_t unit) { access(std::span(&unit, 1)); }
    // One access to an object that lies in several units: a hit where all of them are in the cache.
    void access(std::span<const std::uint32_t> units);
    // What was accessed before only warms the cache.
    void start_counting() noexcept { counting_ = true; }

    miss_ratio_curve curve() const;

  private:
    static constexpr std::size_t buckets = std::size_t{1} << 16;
    static constexpr std::uint32_t never = 0;

    void add(std::size_t time, std::int64_t bytes) noexcept;
    std::uint64_t bytes_until(std::size_t time) const noexcept; // inclusive
    void renumber();
    // The distance, or 0 for a first access; makes the unit the youngest.
    std::uint64_t touch(std::uint32_t unit);

    std::vector<std::uint32_t> bytes_;
    std::vector<std::uint32_t> last_; // time of the unit's last access; `never` if none
    std::vector<std::uint64_t> tree_; // Fenwick: by time, the bytes of the unit last accessed then
    std::uint32_t now_ = 0;
    std::uint64_t resident_ = 0; // bytes of all that were ever accessed
    std::uint64_t bucket_bytes_ = 1;
    std::vector<std::uint64_t> hits_;
    std::uint64_t counted_ = 0;
    bool counting_ = false;
};

} // namespace obase::tools
