// SPDX-License-Identifier: MIT
//
// What the strategies share: one sort under way.
#pragma once

#include "wiscsort/device/input.hpp"
#include "wiscsort/device/output.hpp"
#include "wiscsort/device/scratch.hpp"
#include "wiscsort/order/keys.hpp"
#include "wiscsort/order/parts.hpp"
#include "wiscsort/schedule/scheduler.hpp"
#include "wiscsort/units.hpp"
#include "wiscsort/wiscsort.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace wiscsort::strategy {

struct job {
    const sort_options& options;
    const model::profile& profile;
    const device::input_set& input;
    const order::key_order& order;
    schedule::scheduler& scheduler;
    device::scratch_space& scratch;
    device::output_file& output;
    const model::planned& plan;
    std::uint64_t memory;       // all buffers together
    std::uint64_t write_buffer; // of it, for output
    unsigned threads;
    sort_report& report;

    device::device& device() { return scheduler.device(); }
    order::entry_less less() const { return {&order, {&input, nullptr, 0, 0}}; }
    void progress(const char* phase, std::uint64_t done, std::uint64_t all) const {
        if (options.progress && all != 0)
            options.progress(phase, static_cast<double>(done) / static_cast<double>(all));
    }
};

// Where sorted records go: the output, or a run.
struct sink {
    std::function<void(std::uint64_t offset, const char* from, std::size_t size)> write;
    bool sequential = false; // one writer, in order
};
sink to_output(device::output_file& output);

struct delivery {
    std::uint64_t bytes = 0, records = 0;
    // Offsets in what was written at which records begin, at most one in each stretch of
    // `sample_stride` bytes; the first is 0. Only if they were asked for.
    std::vector<std::uint64_t> samples;
};
constexpr std::uint64_t sample_stride = 256 * KiB;

// Entries that are measured and given places at a time, where sizes differ or records are dropped: as many as fill a
// write buffer of `capacity` bytes, if `records` have `bytes`. Each takes so many bytes beside it: itself, size, place.
constexpr std::uint64_t round_entry_bytes = sizeof(entry) + 2 * sizeof(std::uint64_t);
std::uint64_t entries_of_round(std::uint64_t capacity, std::uint64_t bytes, std::uint64_t records);

// Writes the records of all parts in order: gathers them into a write buffer, and writes it, round by
// round. `source`: where records are. `offset`: of the first byte in the sink. `entries_on_device`: parts
// are mapped runs, reading them is a transfer.
struct delivery_settings {
    std::uint64_t offset = 0;
    bool entries_on_device = false;
    bool records_on_device = true; // false: they are in memory already
    bool sample = false;
    const char* gather_name = "gather";
    const char* write_name = "write";
};
delivery deliver(job& job, const order::sorted_parts& parts, const sink& sink,
                 const delivery_settings& settings);

// Tasks for threads that scan the input: ranges of positions of at most `most` bytes, each in one file.
struct range {
    std::uint64_t begin = 0, end = 0;
};
std::vector<range> ranges_of(const device::input_set& input, std::uint64_t begin, std::uint64_t end,
                             std::uint64_t most);

// OnePass and MergePass: keys and positions are sorted in memory, or in runs on temporary storage where
// they do not fit; then each record is read and written once.
void sort_by_pointers(job& job);
// External merge sort: runs of whole records, merged.
void sort_by_runs(job& job);

} // namespace wiscsort::strategy
