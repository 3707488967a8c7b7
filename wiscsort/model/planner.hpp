// SPDX-License-Identifier: MIT
//
// Which strategy: predicts the seconds of each from a BRAID profile, the records, the memory and the
// page cache, and takes the least. What the terms are is in docs/wiscsort.md; `why` says which one
// decided.
#pragma once

#include "wiscsort/model/profile.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace wiscsort::model {

enum class plan_choice { automatic, onepass, mergepass, ems };
enum class io_choice { automatic, mmap, read, direct };

const char* name_of(plan_choice plan);
const char* name_of(io_choice io);

// What is to be sorted and with what.
struct situation {
    std::uint64_t bytes = 0;
    std::uint64_t records = 0; // an estimate where records differ in size
    double key_bytes = 10; // that a key read asks for; the whole record where it must be scanned
    std::uint64_t largest_record = 0;
    std::uint64_t memory = 0;
    std::uint64_t write_buffer = 0; // bytes gathered before they are written
    unsigned threads = 1;
    // Of the page cache: what the input has there, from 0 to 1, and bytes it can grow to. Emulated
    // devices have none.
    double cached_share = 0;
    std::uint64_t cache = 0;
    bool page_cache = true;
    // Random reads of records that one thread can have in flight past the page cache; 1: faults of a mapping.
    unsigned requests_together = 1;

    // Some of what is read once is not in the page cache when it is needed again.
    bool beyond_cache() const { return page_cache && bytes > cache; }
};

struct prediction {
    plan_choice plan = plan_choice::onepass;
    bool possible = true;
    double seconds = 0;
    // Of it: reading the input or its keys, ordering, gathering values, temporary data, output.
    double scan = 0, sort = 0, gather = 0, runs = 0, merge = 0, write = 0;
    std::string note; // why it is impossible, or what dominates
};

struct planned {
    plan_choice plan = plan_choice::onepass;
    io_choice io = io_choice::mmap;
    bool offset_order = false; // gather each write buffer in the order of the input
    bool beyond_cache = false; // what is read once is not in the page cache when it is needed again
    bool batched = false; // records are gathered by reads, many in flight, not from the mapping
    std::vector<prediction> predictions;
    std::string why;
    std::string device; // name of the profile
};

// Bytes that a plan takes at least; below, it is impossible.
std::uint64_t least_memory(plan_choice plan, const situation& s);

// What threads do beside transferring, and what they transfer: for each record, or each piece of a
// sequential transfer, the bytes of sequential transfer that cost as much, and the thread's own seconds.
// Without a page cache, which hides the device.
struct demand {
    double cost_bytes = 1, own_seconds = 0;
    double per_byte() const { return own_seconds / cost_bytes; }
};
demand scan_demand(const situation& s, const profile& p);
// Random reads of whole records, and merging `parts` sequences of entries.
demand gather_demand(const situation& s, const profile& p, double parts);
demand sequential_demand(const direction_profile& d);

// How records would be gathered.
struct gather_choice {
    bool offset_order = false, batched = false;
};
prediction predict(plan_choice plan, const situation& s, const profile& p,
                   gather_choice* gather = nullptr);
// Throws usage_error if what was asked for is impossible.
planned choose(const situation& s, const profile& p, plan_choice plan, io_choice io);
// Lines of text, as --explain prints them.
std::string explained(const planned& plan, const situation& s);

// What is assumed of a machine's file system of which no profile was given.
profile assumed_profile();

} // namespace wiscsort::model
