// SPDX-License-Identifier: MIT
//
// What `obase bench ycsb` is asked for. One struct, whose defaults are the command's.
#pragma once

#include <obase/options.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace obase::tools {

struct ycsb_settings {
    std::string index = "pugh-hash-table";
    std::string protocol = "arming"; // none, arming or atc
    std::string workload = "C";      // A..F
    std::string distribution;        // "": the workload's own
    double live_share = 0.31;        // loop: share of the records that the sequence touches
    std::uint64_t records = 1'000'000;
    unsigned threads = 2;
    double duration_s = 60; // of the traffic, without loading and the measuring windows
    std::size_t key_size = 30;
    std::size_t value_size = 1024;
    bool in_place = false; // updates write into the value object
    std::uint64_t seed = 1;

    std::string mode; // of obase; "": hint if hints are asked for, else move
    double window_s = 120;
    double time_scale = 12;
    std::string hints = "off"; // off, cold or pageout
    std::string cold = "anon"; // anon or file:DIR
    // Protocol none: pageout asks the kernel once, before the second half of the traffic, to take
    // everything; what is used comes back.
    std::string reclaim = "off";
    std::string trace; // file of recorded operations, replaces workload and distribution
    std::string trace_format = "auto"; // of the trace (tools/workload/trace.hpp)
    bool packages = false;             // records and requests are those of a Debian package index
    std::string package_file;          // what `apt-cache dumpavail` prints; "": that command is run
    bool huge_pages = false;           // HOT asks for huge pages
    bool baseline = true;              // measure the page utilization of plain pointers beside it
    // Then the same load on plain pointers under the kernel's reclaim, as `reclaim` = pageout has it.
    bool beside_kernel = false;

    double real_window_s() const noexcept { return window_s / time_scale; }
    std::string cold_directory() const {
        return cold.starts_with("file:") ? cold.substr(5) : std::string();
    }
};

} // namespace obase::tools
