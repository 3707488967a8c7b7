// SPDX-License-Identifier: MIT
//
// wiscsort: sorts files of records that need not fit in memory, in the way that fits the device.
//
//     wiscsort::sort_options options;
//     options.format = wiscsort::record_format::parse("fixed:100");
//     options.keys.ranges = {"0:10"};
//     options.memory = 512 << 20;
//     wiscsort::sort_report report = wiscsort::sort({"in.dat"}, "out.dat", options);
//
// The sort is stable. OUT appears complete or not at all, and may be one of the inputs. Failures are
// exceptions (wiscsort/error.hpp). A sort uses as many threads as it is told; several may run in one
// process at the same time.
//
// Strategies: `onepass` sorts keys and pointers in memory and then copies each record once, to its
// place; `mergepass` does so with runs of keys and pointers; `ems` is the external merge sort of
// whole records, which reads nothing at random. `automatic` predicts the time of each and takes the
// least (docs/wiscsort.md).
#pragma once

#include "wiscsort/device/device.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/format/key_spec.hpp"
#include "wiscsort/format/record_format.hpp"
#include "wiscsort/model/planner.hpp"
#include "wiscsort/model/profile.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wiscsort {

struct sort_options {
    record_format format;
    key_spec::options keys;
    bool unique = false;           // of records with equal keys, the first only
    std::uint64_t memory = 0;      // bytes of buffers; 0: half of what is available
    unsigned threads = 0;          // 0: one per processor
    std::vector<std::string> temp; // directories for runs; none: that of OUT, or TMPDIR
    model::plan_choice plan = model::plan_choice::automatic;
    model::io_choice io = model::io_choice::automatic;
    bool sync = true;       // on the device before sort() returns
    bool controlled = true; // false: no thread-pool controller, no scheduler; for comparisons
    // Of the device that the files are on. None: assumptions, and the page cache is looked at.
    std::optional<model::profile> profile;
    // An emulated device to run on; none: the machine.
    device::device* device = nullptr;
    // Called with a phase and the share of it that is done, by one thread at a time.
    std::function<void(const char* phase, double share)> progress;
};

struct sort_report {
    std::uint64_t records_in = 0, records_out = 0;
    std::uint64_t bytes_in = 0, bytes_out = 0;
    std::uint64_t memory = 0; // the budget
    unsigned threads = 0;
    std::uint64_t runs = 0;   // on temporary storage; 0: none were needed
    std::uint64_t passes = 0; // over whole records
    double seconds = 0;       // without sync
    double sync_seconds = 0;
    std::uint64_t peak_buffers =
        0; // bytes of memory allocated at once, of all sorts of the process
    std::map<std::string, double> phases;
    device::traffic traffic;
    model::planned plan;
};

// Sorts the records of all inputs, one after the other; "-" is the standard input, or output.
// Throws usage_error or error; OUT is then what it was.
sort_report sort(const std::vector<std::string>& inputs, const std::string& output,
                 const sort_options& options);

// What sort() would do, without doing it.
model::planned explain(const std::vector<std::string>& inputs, const std::string& output,
                       const sort_options& options);

// For programs: a mapped input that is cut while it is read ends the process with a message and exit
// code 1, in place of SIGBUS.
void guard_against_cut_files(const char* program);

} // namespace wiscsort
