// SPDX-License-Identifier: MIT
#include "wiscsort/model/planner.hpp"

#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <cmath>

namespace wiscsort::model {

namespace {

constexpr double entry_bytes = 16;
constexpr double page = 4096;

double log2_of(double n) { return n < 2 ? 0 : std::log2(n); }

// Seconds on a device and processor. Threads are as many as the controller would use.
struct costs {
    const situation& s;
    const profile& p;
    double threads, read_rate, write_rate;

    costs(const situation& situation, const profile& profile)
        : s(situation), p(profile), threads(situation.threads) {
        const auto rate = [&](const direction_profile& d) {
            return profile::best_pool(d, s.threads,
                                      s.page_cache ? 0 : sequential_demand(d).per_byte())
                .rate;
        };
        read_rate = rate(p.read);
        write_rate = rate(p.write);
    }
    double granule() const {
        return s.page_cache ? std::max(page, static_cast<double>(p.granule))
                            : static_cast<double>(p.granule);
    }
    double sequential(double bytes) const { return bytes / read_rate; }
    double write(double bytes) const { return bytes / write_rate; }
    // `count` reads of `size` bytes, each somewhere; of one thread so many are in flight.
    double random(double count, double size, double together) const {
        const double moved = std::floor((size - 1) / granule() + 1.999) * granule();
        const double expected = std::min(moved, ((size - 1) / granule() + 1) * granule());
        const double in_flight = together * profile::best_pool(p.read, s.threads).threads;
        return count * expected / p.random_share / read_rate +
               count * p.read.latency_seconds / in_flight;
    }
    // `count` times what a thread transfers and does, by as many threads as are best.
    double repeated(double count, const demand& d) const {
        return count * d.cost_bytes / profile::best_pool(p.read, s.threads, d.per_byte()).rate;
    }
    // A write buffer's records in the order of the input: of the granules of the input a part is touched,
    // and those that are not at most one behind the one before are random.
    double in_order_of_input(double buffers) const {
        const double all = static_cast<double>(s.bytes) / granule();
        const double record = static_cast<double>(s.bytes) / static_cast<double>(s.records);
        const double each =
            ((record - 1) / granule() + 1) * static_cast<double>(s.records) / buffers;
        const double touched = 1 - std::exp(-each / all);
        const double behind = 1 - (1 - touched) * (1 - touched);
        const double cost = behind + (1 - behind) / p.random_share;
        return buffers * sequential(all * touched * granule() * cost) +
               buffers * all * touched * p.read.latency_seconds / (p.requests_per_thread * threads);
    }
    double processor(double seconds) const { return seconds / threads; }
    double copy(double bytes) const { return processor(bytes / p.processor.copy_bytes_per_second); }
};

} // namespace

demand scan_demand(const situation& s, const profile& p) {
    const auto granule = static_cast<double>(p.granule);
    const double record =
        s.records == 0 ? 1 : static_cast<double>(s.bytes) / static_cast<double>(s.records);
    const double moved = std::min(record, ((s.key_bytes - 1) / granule + 1) * granule);
    demand d;
    // At most one granule is skipped between two keys: the device reads ahead.
    d.cost_bytes = record <= 2 * granule ? moved : moved / p.random_share;
    d.own_seconds = p.processor.extract_seconds + std::min(1.0, record / granule) *
                                                      p.read.latency_seconds /
                                                      p.requests_per_thread;
    return d;
}

demand gather_demand(const situation& s, const profile& p, double parts) {
    const auto granule = static_cast<double>(p.granule);
    const double record =
        s.records == 0 ? 1 : static_cast<double>(s.bytes) / static_cast<double>(s.records);
    demand d;
    d.cost_bytes = ((record - 1) / granule + 1) * granule / p.random_share;
    d.own_seconds = p.processor.gather_seconds + p.processor.merge_entry_seconds * log2_of(parts) +
                    record / p.processor.copy_bytes_per_second +
                    p.read.latency_seconds / p.requests_per_thread;
    return d;
}

// Pieces of 64 KiB, the least that phases are cut into.
demand sequential_demand(const direction_profile& d) { return {64.0 * KiB, d.latency_seconds}; }

const char* name_of(plan_choice plan) {
    switch (plan) {
    case plan_choice::automatic:
        return "auto";
    case plan_choice::onepass:
        return "onepass";
    case plan_choice::mergepass:
        return "mergepass";
    case plan_choice::ems:
        break;
    }
    return "ems";
}

const char* name_of(io_choice io) {
    switch (io) {
    case io_choice::automatic:
        return "auto";
    case io_choice::mmap:
        return "mmap";
    case io_choice::read:
        return "read";
    case io_choice::direct:
        break;
    }
    return "direct";
}

profile assumed_profile() {
    profile p;
    p.name = "assumed";
    p.source = "no profile was given: a solid-state disk behind the page cache is assumed; "
               "`wiscsort probe DIR` measures one";
    p.read = {.bytes_per_second = 1.5e9,
              .threads_at_peak = 1,
              .decline = 0,
              .floor = 1,
              .overlap_share = 1,
              .latency_seconds = 60e-6};
    p.write = {.bytes_per_second = 1.2e9,
               .threads_at_peak = 1,
               .decline = 0,
               .floor = 1,
               .overlap_share = 1,
               .latency_seconds = 0};
    p.random_share = .5;
    p.granule = 4096;
    return p;
}

std::uint64_t least_memory(plan_choice plan, const situation& s) {
    switch (plan) {
    case plan_choice::automatic:
        return 0;
    case plan_choice::onepass:
        return s.records * 16 + s.write_buffer;
    case plan_choice::mergepass:
        return s.write_buffer + MiB / 2;
    case plan_choice::ems:
        break;
    }
    // A chunk, its entries, and buffers for two runs and the output must hold the largest record.
    return std::max<std::uint64_t>(2 * MiB, 8 * s.largest_record);
}

prediction predict(plan_choice plan, const situation& s, const profile& p, gather_choice* gather) {
    const costs c(s, p);
    const processor_profile& cpu = p.processor;
    const auto n = static_cast<double>(s.records);
    const auto bytes = static_cast<double>(s.bytes);
    const double record = n == 0 ? 1 : bytes / n;
    prediction out;
    out.plan = plan;
    const std::uint64_t least = least_memory(plan, s);
    if (s.memory < least) {
        out.possible = false;
        out.note = fmt::format("needs at least {} of memory", bytes_text(least));
    }
    const double absent = s.page_cache ? 1 - s.cached_share : 1;
    // What is not in the cache any more when it is needed again.
    const double evicted =
        s.page_cache ? std::clamp(1 - static_cast<double>(s.cache) / std::max(1.0, bytes), 0.0, 1.0)
                     : 1;
    out.write = c.write(bytes);
    if (plan == plan_choice::ems) {
        const double chunk = static_cast<double>(s.memory) * .8 / (1 + entry_bytes / record);
        const double runs = std::ceil(bytes / std::max(1.0, chunk));
        out.scan = c.sequential(bytes * absent) + c.copy(bytes);
        out.sort = c.processor(
            n * (cpu.extract_seconds + cpu.sort_seconds * log2_of(n / std::max(1.0, runs))));
        out.gather = c.processor(n * cpu.gather_seconds) + c.copy(bytes);
        if (runs > 1) {
            const double fan_in = std::max(2.0, static_cast<double>(s.memory) * .5 / (64.0 * KiB));
            const double passes = std::max(1.0, std::ceil(log2_of(runs) / log2_of(fan_in)));
            out.runs = passes * (c.write(bytes) + c.sequential(bytes * evicted));
            out.merge =
                passes * (c.copy(bytes * 2) + c.processor(n * cpu.merge_seconds * log2_of(runs)));
        }
    } else {
        const double faults = p.requests_per_thread;
        // A strided read of keys moves whole granules; behind a page cache, whole pages, in order.
        double scan = 0;
        if (s.page_cache) {
            // Extraction is a part of sorting there.
            scan = record < page ? c.sequential(bytes * absent)
                                 : std::min(c.sequential(bytes * absent),
                                            c.random(n * absent, s.key_bytes, faults));
        } else {
            scan = c.repeated(n, scan_demand(s, p));
        }
        out.scan = scan;
        // Each thread sorts its part, and the parts are merged while records are gathered.
        const auto parts = static_cast<double>(s.threads);
        const double index = n * entry_bytes;
        double runs = parts;
        if (plan == plan_choice::mergepass)
            runs *= std::max(
                1.0, std::ceil(index /
                               std::max(1.0, static_cast<double>(
                                                 s.memory - std::min(s.memory, s.write_buffer)))));
        out.sort = c.processor(
            n * ((s.page_cache ? cpu.extract_seconds : 0) + cpu.sort_seconds * log2_of(n / runs)));
        // In the order of offsets each buffer reads the input once, in order. Behind a page cache that cannot hold it
        // each page is a request of its own all the same: what was read ahead is gone before its turn comes.
        const double buffers =
            std::max(1.0, bytes / static_cast<double>(std::max<std::uint64_t>(1, s.write_buffer)));
        const double merging = c.processor(n * cpu.merge_entry_seconds * log2_of(runs));
        const double copying = c.processor(n * cpu.gather_seconds) + c.copy(bytes);
        // Without a page cache the threads that transfer are those that merge and copy.
        double by_record = s.page_cache ? c.random(n * evicted, record, faults) + copying + merging
                                        : c.repeated(n, gather_demand(s, p, runs));
        // Past the page cache every record is read, those too that it would have.
        const double batched =
            s.page_cache && s.requests_together > 1
                ? c.random(n, record, std::max<double>(faults, s.requests_together)) + copying +
                      merging
                : by_record;
        const bool is_batched = evicted > 0 && batched < by_record;
        if (is_batched) by_record = batched;
        const double in_order =
            (s.page_cache
                 ? buffers * c.random(bytes * evicted / page, page, faults)
                 : c.in_order_of_input(buffers) + n * cpu.sort_seconds * log2_of(n / buffers)) +
            copying + merging;
        if (gather != nullptr) {
            gather->offset_order = in_order < by_record && evicted > 0;
            gather->batched = is_batched && !gather->offset_order;
        }
        out.gather = std::min(by_record, in_order);
        if (s.page_cache) {
            out.gather -= merging;
            out.merge = merging;
        }
        if (plan == plan_choice::mergepass)
            out.runs = c.write(index) + (s.page_cache ? 0 : c.sequential(index)) + c.copy(index);
    }
    // One buffer is written while the next is filled, and a merge reads while it writes, where that pays.
    if (!s.page_cache && pays_to_overlap(p)) {
        if (plan == plan_choice::ems && out.runs > 0) {
            const double reads = c.sequential(bytes), writes = c.write(bytes);
            out.gather = std::max(0.0, out.gather - writes);
            out.write = std::max(0.0, writes - reads);
        } else {
            out.write = std::max(0.0, out.write - out.gather);
        }
    }
    out.seconds = out.scan + out.sort + out.gather + out.runs + out.merge + out.write;
    if (out.possible) {
        const std::pair<const char*, double> terms[] = {{"reading the input", out.scan},
                                                        {"sorting keys", out.sort},
                                                        {"gathering records", out.gather},
                                                        {"temporary data", out.runs},
                                                        {"merging", out.merge},
                                                        {"writing the output", out.write}};
        const auto* most =
            std::max_element(std::begin(terms), std::end(terms),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
        out.note = fmt::format("mostly {}", most->first);
    }
    return out;
}

planned choose(const situation& s, const profile& p, plan_choice plan, io_choice io) {
    planned result;
    result.device = p.name;
    const prediction* best = nullptr;
    gather_choice gathers[3] = {};
    for (const plan_choice one : {plan_choice::onepass, plan_choice::mergepass, plan_choice::ems})
        result.predictions.push_back(predict(one, s, p, &gathers[result.predictions.size()]));
    for (const prediction& one : result.predictions) {
        if (plan != plan_choice::automatic && one.plan != plan) continue;
        if (!one.possible) {
            if (plan != plan_choice::automatic)
                refuse("--memory {}: {} {}", bytes_text(s.memory), name_of(plan), one.note);
            continue;
        }
        if (best == nullptr || one.seconds < best->seconds) best = &one;
    }
    if (best == nullptr) {
        std::uint64_t least = UINT64_MAX;
        for (const prediction& one : result.predictions)
            least = std::min(least, least_memory(one.plan, s));
        refuse("--memory {}: too small; at least {} are needed", bytes_text(s.memory),
               bytes_text(least));
    }
    result.plan = best->plan;
    const gather_choice& gather = gathers[best - result.predictions.data()];
    result.offset_order = gather.offset_order;
    result.batched = gather.batched && io != io_choice::mmap;
    result.beyond_cache = s.beyond_cache();
    result.why = plan != plan_choice::automatic ? "asked for" : best->note;
    result.io = io;
    if (io == io_choice::automatic) {
        // Output that the cache cannot hold would push out what is still to be gathered.
        const bool large =
            (s.page_cache && s.bytes > s.cache / 2 && s.bytes > 64 * MiB) || result.batched;
        result.io = large ? io_choice::direct : io_choice::mmap;
    }
    return result;
}

std::string explained(const planned& plan, const situation& s) {
    std::string text = fmt::format(
        "input: {} in {} records{}, {:.0f} % of it in the page cache, which can hold {}\n"
        "memory {}, {} threads, device profile: {}\n",
        bytes_text(s.bytes), s.records, s.largest_record == 0 ? "" : " (estimated)",
        100 * s.cached_share, bytes_text(s.cache), bytes_text(s.memory), s.threads, plan.device);
    for (const prediction& one : plan.predictions) {
        if (!one.possible) {
            text += fmt::format("  {:<9} impossible: {}\n", name_of(one.plan), one.note);
            continue;
        }
        text += fmt::format("  {:<9} {:8.3f} s: scan {:.3f}, sort {:.3f}, gather {:.3f}, runs "
                            "{:.3f}, merge {:.3f}, write {:.3f}; {}\n",
                            name_of(one.plan), one.seconds, one.scan, one.sort, one.gather,
                            one.runs, one.merge, one.write, one.note);
    }
    text += fmt::format("plan: {}, io {}{} ({})\n", name_of(plan.plan), name_of(plan.io),
                        plan.offset_order ? ", records gathered in the order of the input"
                        : plan.batched    ? ", records gathered by reads in flight together"
                                          : "",
                        plan.why);
    return text;
}

} // namespace wiscsort::model
