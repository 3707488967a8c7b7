// SPDX-License-Identifier: MIT
//
// A BRAID profile: what a strategy has to know about a device. The letters are those of the paper's
// model of byte-addressable storage.
//
//   B  byte addressability   `granule`: the least that a request moves
//   R  random reads          `random_share`: the part of the sequential rate that random ones keep
//   A  asymmetry             a rate and a latency for each direction
//   I  interference          `overlap_share`: what a direction keeps while the other one is active
//   D  degrading concurrency `threads_at_peak`, `decline`, `floor`
//
// With n threads at work in a direction its capacity is
//
//   bytes_per_second * min(1, n / threads_at_peak)
//                    * max(floor, 1 - decline * max(0, n - threads_at_peak))
//                    * (overlap_share while the other direction is active)
//
// `wiscsort probe DIR` measures one; the shipped ones say in `source` where their figures are from.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace wiscsort::model {

struct direction_profile {
    double bytes_per_second = 1e9;
    double threads_at_peak = 1;
    double decline = 0; // of the peak, for each thread beyond
    double floor = 0;   // of the peak, with any number of threads
    double overlap_share = 1;
    double latency_seconds = 0; // of each request

    double capacity(double threads, bool other_active) const;
};

// Processor time of the parts of a sort. Measured, or assumed for a device that is emulated.
struct processor_profile {
    double extract_seconds = 6e-9;       // of a record: finding it, making its entry
    double sort_seconds = 2.2e-9;        // of an entry and a factor of 2
    double gather_seconds = 25e-9;       // of a record: the cache misses of its copy
    double merge_seconds = 12e-9;        // of a record and a factor of 2, whole records
    double copy_bytes_per_second = 8e9;  // of one thread
    double merge_entry_seconds = 1.5e-9; // of an entry and a factor of 2
};

struct profile {
    std::string name = "unnamed";
    std::string source;
    direction_profile read, write;
    double random_share = 1;
    std::uint64_t granule = 64;
    unsigned requests_per_thread = 1; // in flight at the same time
    processor_profile processor;

    // The least that is worth a request of its own in a sequential transfer, from 4 to 64 KiB: sixteen
    // granules, and enough that latency is a fifth of its time.
    std::uint64_t least_request(const direction_profile& direction) const;

    // The threads, of at most `most`, that move most, and the bytes per second that they move. With each
    // byte a thread is busy for `own_seconds` without transferring (processor time, latency), so n threads
    // have m < n transfers under way: n = m + capacity(m) * own_seconds.
    struct pool {
        unsigned threads;
        double rate;
    };
    static pool best_pool(const direction_profile& direction, unsigned most,
                          double own_seconds = 0);
};

// Whether a byte read and a byte written take less time at once than one after the other.
bool pays_to_overlap(const profile& profile);

// Throws usage_error: a field that is missing, unknown or out of its range; `where` names the source.
profile from_json(const nlohmann::json& json, const std::string& where);
nlohmann::json to_json(const profile& profile);

// pmem, bd, brd, bard, ad.
const std::vector<profile>& shipped_profiles();
// A shipped one by its name, or a file by its path. Throws usage_error, or error if it is unreadable.
profile find_profile(const std::string& name_or_path);

} // namespace wiscsort::model
