// SPDX-License-Identifier: MIT
//
// What a cell of `obase bench memory` is asked for: one load on one store under one policy. The
// defaults are the command's.
//
// The cell runs in a process of its own, which gets this struct as JSON.
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace obase::tools {

struct memory_settings {
    std::string load = "zipf"; // zipf, hotspot, uniform, loop or buckets
    double theta = 0.99;       // zipf
    double hot_data = 0.2;     // hotspot: share of the records
    double hot_accesses = 0.8; // and of the accesses
    double live_share = 0.31;  // loop: share of the records
    unsigned shift_every = 0;  // hotspot: another hot set after so many windows; 0: never
    std::string popularity;    // buckets: a folder with CacheLib's config.json
    double update_share = 0;   // of the operations; the others read
    double churn_share = 0;    // of the operations: a record is deleted, and put again
    std::uint64_t records = 100'000;
    std::size_t key_size = 30;
    std::size_t value_size = 1024;
    std::string index = "pugh-hash-table";
    unsigned threads = 2;
    double rate =
        -1; // operations per second of all clients; 0: as fast as they can; < 0: records / 2
    std::uint64_t seed = 1;

    std::string policy;           // plain, or of obase; "": OBASE_POLICY
    double window_s = 0;          // before time_scale; 0: OBASE_WINDOW_SECONDS, or 60
    double time_scale = 0;        // 0: OBASE_TIME_SCALE, or 60
    std::string hints;            // off, cold or pageout; "": OBASE_HINT_*, or pageout
    std::string cold;             // anon or file:DIR; "": OBASE_COLD_BACKING
    std::vector<std::string> set; // more options of obase, name=value
    std::string limit; // bytes, or a percentage of what was charged after loading; "": none
    // The limit is in force while the store is filled, and the collector runs. A percentage is of what the row's
    // reference was charged for, or of the records' bytes.
    bool limit_first = false;
    std::string swap = "none";  // none, any, zram or file:DIR
    unsigned pageout_every = 0; // plain: all is paged out once in so many windows; 0: never
    bool pass = false;          // once settled, every record is read once

    // The end: so many windows in which the used memory differs by no more than this.
    unsigned settle_windows = 20;
    double settle_share = 0.01;
    unsigned max_windows = 300;
    bool trace = false; // a line for each window

    double operations_per_second() const noexcept {
        return rate < 0 ? static_cast<double>(records) / 2 : rate;
    }
    bool plain() const noexcept { return policy == "plain"; }
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(memory_settings, load, theta, hot_data, hot_accesses, live_share,
                                   shift_every, popularity, update_share, churn_share, records,
                                   key_size, value_size, index, threads, rate, seed, policy,
                                   window_s, time_scale, hints, cold, set, limit, limit_first, swap,
                                   pageout_every, pass, settle_windows, settle_share, max_windows,
                                   trace)

} // namespace obase::tools
