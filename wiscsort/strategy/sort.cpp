// SPDX-License-Identifier: MIT
//
// sort(): opens everything, asks the planner, runs the strategy, publishes the output.
#include "wiscsort/device/batch.hpp"
#include "wiscsort/device/memory.hpp"
#include "wiscsort/strategy/job.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace wiscsort {

namespace {

constexpr std::uint64_t least_budget = MiB;
// A thread has up to four copies of records or keys at a time, and they may take half of the memory.
constexpr std::uint64_t copies = 8;

std::string parent_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::vector<std::string> temp_directories(const std::string& output, const sort_options& options) {
    if (!options.temp.empty()) return options.temp;
    if (output != "-" && output.rfind("/dev/", 0) != 0) return {parent_of(output)};
    const char* const tmp = std::getenv("TMPDIR");
    return {tmp != nullptr && *tmp != '\0' ? tmp : "/tmp"};
}

// What a look at some records tells about all of them.
struct sampled {
    std::string common;      // of all keys looked at
    double record_bytes = 1; // on average
    double key_bytes = 1;    // that reading a key moves
    std::uint64_t largest = 0;
};

constexpr std::uint64_t sample_records = 1024;
constexpr std::size_t longest_common = 4096;

// Throws order::record_too_large rather than copy a record of more than `most` bytes; what is mapped and has its keys in
// place is not copied.
sampled look_at_records(const device::input_set& input, const key_spec& keys, std::uint64_t most) {
    sampled result;
    std::string record, key;
    std::uint64_t looked = 0, bytes = 0;
    const auto look = [&](std::uint64_t position) {
        const record_view view = input.record_at(position, record, most);
        if (view.stored.size() > most) throw order::record_too_large{position, view.stored.size()};
        const std::string_view found = keys.key_of(view.body, key);
        if (looked == 0)
            result.common = found.substr(0, longest_common);
        else
            result.common.resize(common_prefix(result.common, found));
        ++looked;
        bytes += view.written_size;
        result.largest = std::max(result.largest, view.written_size);
        return view.stored.size();
    };
    const record_format& format = input.format();
    const std::uint64_t per_file =
        std::max<std::uint64_t>(1, sample_records / std::max<std::size_t>(1, input.files().size()));
    for (const device::input_file& file : input.files()) {
        if (looked >= sample_records) break;
        if (format.fixed()) {
            const std::uint64_t records = file.size / format.size;
            const std::uint64_t some = std::min(records, per_file);
            for (std::uint64_t i = 0; i < some; ++i)
                look(file.begin + records * i / some * format.size);
            continue;
        }
        // From 16 places of a file of lines, and from its beginning where only that is one.
        const std::uint64_t places = format.kind == record_format::kinds::lines ? 16 : 1;
        for (std::uint64_t place = 0; place < places; ++place) {
            std::uint64_t at = file.begin + file.size / places * place;
            if (place > 0) {
                // What is left of a line of any length; a piece of it is enough to find its end.
                const std::uint64_t left = std::min<std::uint64_t>(file.end() - at, 64 * KiB);
                std::string piece(left, '\0');
                input.read(at, piece.data(), left);
                const std::size_t end = piece.find(format.terminator);
                if (end == std::string::npos) continue;
                at += end + 1;
            }
            std::uint64_t read = 0;
            for (std::uint64_t i = 0; i < per_file / places + 1 && at < file.end() && read < MiB;
                 ++i) {
                const std::uint64_t size = look(at);
                at += size;
                read += size;
            }
        }
    }
    if (looked > 0) result.record_bytes = static_cast<double>(bytes) / static_cast<double>(looked);
    result.key_bytes = format.fixed() && keys.in_place() ? static_cast<double>(keys.length())
                                                         : result.record_bytes;
    return result;
}

// A sort up to the moment at which the strategy is known.
struct prepared {
    key_spec keys;
    device::scratch_space scratch;
    device::input_set input;
    device::machine_memory machine;
    std::uint64_t memory;
    unsigned threads;
    sampled sample;
    model::profile profile;
    model::situation situation;
    model::planned plan;

    // Whether keys are compared in copies.
    bool copied() const { return input.base() == nullptr || !keys.in_place(); }
    // The largest record that may be copied: all threads' copies together take half of the memory.
    std::uint64_t largest_copy() const {
        if (!copied()) return UINT64_MAX;
        return std::max<std::uint64_t>(64 * KiB, memory / copies / threads);
    }

    static std::uint64_t memory_of(const sort_options& options,
                                   const device::machine_memory& machine) {
        const std::uint64_t memory = options.memory != 0
                                         ? options.memory
                                         : std::max<std::uint64_t>(machine.available / 2, 16 * MiB);
        if (memory < least_budget)
            refuse("--memory {}: too small; at least {} are needed", bytes_text(memory),
                   bytes_text(least_budget));
        return memory;
    }
    static unsigned threads_of(const sort_options& options) {
        const unsigned threads = options.threads != 0 ? options.threads : device::processors();
        if (threads > 1024) refuse("--threads {}: at most 1024 are supported", threads);
        return threads;
    }
    sampled look() const {
        try {
            // EMS has room for an eighth of the memory; for no plan more of a record may be copied.
            return look_at_records(input, keys,
                                   copied() ? std::max<std::uint64_t>(64 * KiB, memory / copies)
                                            : UINT64_MAX);
        } catch (const order::record_too_large& found) {
            refuse_record(found);
        }
    }
    [[noreturn]] void refuse_record(const order::record_too_large& found) const {
        refuse("--memory {}: too small for the record of {} or more at {}, which has to be copied "
               "to be compared ({}); at least {} are needed",
               bytes_text(memory), bytes_text(found.size), input.place(found.position),
               input.base() == nullptr ? "--io read" : "its key is not used as it is stored",
               bytes_text(found.size * copies * threads));
    }

    static key_spec::options key_options(const sort_options& options) {
        key_spec::options keys = options.keys;
        keys.unique = options.unique;
        return keys;
    }

    prepared(const std::vector<std::string>& inputs, const std::string& output,
             const sort_options& options)
        : keys(key_options(options), options.format), scratch(temp_directories(output, options)),
          input(inputs, {options.format, options.io != model::io_choice::read}, scratch),
          machine(device::look_at_memory()), memory(memory_of(options, machine)),
          threads(threads_of(options)), sample(look()),
          profile(options.profile ? *options.profile : model::assumed_profile()) {
        situation.bytes = input.bytes();
        situation.records = static_cast<std::uint64_t>(static_cast<double>(input.bytes()) /
                                                       std::max(1.0, sample.record_bytes) * 1.02);
        if (options.format.fixed()) situation.records = input.bytes() / options.format.size;
        situation.key_bytes = sample.key_bytes;
        situation.largest_record = options.format.fixed() ? options.format.size : sample.largest;
        situation.memory = memory;
        situation.write_buffer = std::clamp<std::uint64_t>(memory / 4, 256 * KiB, 32 * MiB);
        // No more than there is to write.
        situation.write_buffer = std::min(
            situation.write_buffer,
            std::max<std::uint64_t>(256 * KiB, device::round_up(input.bytes(), device::page_size)));
        situation.threads = threads;
        situation.page_cache = options.device == nullptr || !options.device->emulated();
        if (situation.page_cache) {
            situation.cached_share = input.cached_share();
            situation.cache = machine.available - std::min(machine.available, memory);
        }
        // Where deliver.cpp gathers by reads: records of one size, of which none is dropped. A ring is made to know
        // whether there can be one, and only if that matters.
        if (situation.beyond_cache() && options.format.fixed() && !options.unique &&
            options.format.size <= situation.write_buffer / 4 &&
            options.io != model::io_choice::mmap && device::read_batch().together())
            situation.requests_together = device::read_batch::most;
        plan = model::choose(situation, profile, options.plan, options.io);
        if (plan.io == model::io_choice::direct) input.bypass_cache(threads);
    }
};

} // namespace

model::planned explain(const std::vector<std::string>& inputs, const std::string& output,
                       const sort_options& options) {
    return prepared(inputs, output, options).plan;
}

void guard_against_cut_files(const char* program) { device::guard_mappings(program); }

sort_report sort(const std::vector<std::string>& inputs, const std::string& output,
                 const sort_options& options) {
    device::real_device real;
    device::device& device = options.device != nullptr ? *options.device : real;
    const double begin = device.now();
    device::reset_blocks_peak();
    prepared ready(inputs, output, options);
    sort_report report;
    report.plan = ready.plan;
    report.plan.why += "\n" + model::explained(ready.plan, ready.situation);
    report.memory = ready.memory;
    report.threads = ready.threads;
    report.bytes_in = ready.input.bytes();
    device::output_file out(output, ready.plan.io == model::io_choice::direct);
    // Files whose last line has no terminator get one.
    std::uint64_t most = ready.input.bytes();
    if (options.format.kind == record_format::kinds::lines) most += ready.input.files().size();
    if (!options.unique) out.reserve(most);

    std::string common = ready.sample.common;
    for (int attempt = 0;; ++attempt) {
        const order::key_order order(ready.keys, common, ready.largest_copy());
        schedule::controller controller(
            ready.profile, ready.threads, options.controlled,
            {model::scan_demand(ready.situation, ready.profile).per_byte(),
             model::sequential_demand(ready.profile.read).per_byte(),
             model::gather_demand(ready.situation, ready.profile, ready.threads).per_byte(),
             model::sequential_demand(ready.profile.write).per_byte()});
        schedule::scheduler scheduler(device, controller, ready.profile);
        report.records_in = ready.situation.records;
        strategy::job job{
            options,       ready.profile, ready.input, order,        scheduler,
            ready.scratch, out,           ready.plan,  ready.memory, ready.situation.write_buffer,
            ready.threads, report};
        try {
            if (ready.input.bytes() == 0)
                report.records_in = 0;
            else if (ready.plan.plan == model::plan_choice::ems)
                strategy::sort_by_runs(job);
            else
                strategy::sort_by_pointers(job);
        } catch (const order::shorter_prefix& found) {
            // The sample was wrong about what all keys begin with. The third guess is nothing.
            common.resize(attempt < 2 ? std::min(found.length, common.size() - 1) : 0);
            continue;
        } catch (const order::record_too_large& found) {
            ready.refuse_record(found);
        }
        for (const auto& [name, seconds] : scheduler.seconds())
            if (seconds > 0 && *name.c_str() != '\0') report.phases[name] += seconds;
        break;
    }
    ready.input.verify_unchanged();
    report.seconds = device.now() - begin;
    report.traffic = device.counted();
    report.peak_buffers = device::blocks_peak();
    const double sync_begin = real.now();
    out.publish(report.bytes_out, options.sync);
    report.sync_seconds = real.now() - sync_begin;
    return report;
}

} // namespace wiscsort
