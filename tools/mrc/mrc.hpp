// SPDX-License-Identifier: MIT
//
// `obase mrc`: how good a layout is. A store is filled, read as a load says, and reorganized window by
// window; then each object's place is looked up, and the miss-ratio curves of its objects are held
// against those of its pages (miss_ratio_curve.hpp).
//
// Layouts: `malloc`, the order in which this program's allocator placed the objects, in plain
// pointers; or the name of a policy, under which obase moved them.
//
// Windows are counted in accesses, not in seconds: reading stops for each collection, so nothing is
// vetoed and the result does not depend on the machine's speed. The time constants of a policy
// (promotion rate per minute) see each window as 120 seconds.
#pragma once

#include "tools/bench/bench.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace obase::tools {

struct mrc_settings {
    std::string load = "zipf"; // zipf, hotspot, uniform or trace
    double theta = 0.99;       // zipf
    double hot_data = 0.2;     // hotspot: share of the records
    double hot_accesses = 0.8; // and of the accesses
    std::string trace;         // trace: the file
    std::uint64_t records = 1'000'000;
    std::size_t key_size = 24;
    std::size_t value_size = 128;
    std::string index = "movable-segmented-hash-table";
    std::vector<std::string> layouts; // empty: malloc and every policy
    std::vector<double> accesses_per_object{32};
    double window_accesses = 1; // per record and window
    std::vector<std::uint64_t> page_bytes{4096, std::uint64_t{2} << 20};
    unsigned threads = 2;
    std::uint64_t seed = 1;
    std::uint64_t lru_requests = 4'000'000; // at most; the curve of LRU
};

// All layouts that can be asked for.
std::vector<std::string> mrc_layouts();

// Throws std::invalid_argument for settings that make no sense, std::runtime_error when it cannot
// measure. Each layout and number of accesses has a process of its own.
bench_result measure_mrc(const mrc_settings& settings);

// Without options: the cases of the target table.
bench_result measure_mrc_targets(bool quick);

// The cells of one census. Public for tests.
class object_census;
class popularity;
nlohmann::json mrc_cells(const object_census& census, const popularity& asked,
                         const mrc_settings& settings, const std::string& layout,
                         double accesses_per_object);

} // namespace obase::tools
