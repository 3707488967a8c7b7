// SPDX-License-Identifier: MIT
#include "tools/kv/load.hpp"

#include "tools/kv/changing_load.hpp"
#include "tools/kv/load_spec.hpp"
#include "tools/kv/mixgraph_load.hpp"

#include "tools/workload/cachelib_config.hpp"
#include "tools/workload/cluster_statistics.hpp"
#include "tools/workload/distribution.hpp"
#include "tools/workload/hot_set.hpp"
#include "tools/workload/popularity_buckets.hpp"
#include "tools/workload/power_law.hpp"
#include "tools/workload/scattered_ids.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace obase::tools {
namespace {

constexpr std::uint64_t any_number = std::uint64_t{1} << 53;

// Ranks of any distribution, scattered over the records.
template <class Ranks>
position_source scattered(Ranks ranks, std::uint64_t records, std::uint64_t seed) {
    return [ids = workload::scattered_ids(std::move(ranks), records, seed)](
               std::uint64_t, workload::random_stream& random) { return ids.next(random); };
}

position_source hot_positions(load_spec& spec, const ycsb_settings& s) {
    workload::hot_set_options options;
    options.records = s.records;
    options.data_share = spec.number("data", .2, 0, 1);
    options.access_share = spec.number("accesses", .8, 0, 1);
    options.shift_period = spec.operations("shift-every", 0);
    options.shift_share = spec.number("shift", 1, 0, 1);
    if (spec.given("data-to")) {
        options.final_data_share = spec.number("data-to", 0, 0, 1);
        options.resize_over = spec.operations("resize-over", 0);
        if (options.resize_over == 0)
            spec.refuse("resize-over", "a number of operations above 0, or of seconds");
    }
    options.seed = s.seed;
    return [set = workload::hot_set(options)](std::uint64_t k, workload::random_stream& random) {
        return set.next(k, random);
    };
}

// What all but YCSB's, mixgraph and traces can be given.
void take_changes(load_spec& spec, changing_load& load) {
    load.operations.update = spec.number("writes", load.operations.update, 0, 1);
    load.operations.read_modify_write = spec.number("rmw", load.operations.read_modify_write, 0, 1);
    if (spec.given("sizes"))
        load.values = workload::value_sizes(workload::size_distribution::parsed(spec.text("sizes")),
                                            load.seed);
    if (spec.given("sizes-to")) {
        const std::uint64_t over = spec.operations("sizes-over", 0);
        if (over == 0) spec.refuse("sizes-over", "a number of operations above 0, or of seconds");
        load.values = workload::value_sizes(
            load.values.first(), workload::size_distribution::parsed(spec.text("sizes-to")), over,
            load.seed);
    }
    load.churn_share = spec.number("churn", 0, 0, 1);
    if (spec.given("delete"))
        load.deletion = workload::mass_deletion({.records = load.records,
                                                 .share = spec.number("delete", 0, 0, .999),
                                                 .begin = spec.operations("delete-at", 0),
                                                 .over = spec.operations("delete-over", 0),
                                                 .seed = load.seed});
    if (spec.given("pass-at"))
        load.pass = workload::read_pass({.records = load.records,
                                         .begin = spec.operations("pass-at", 0),
                                         .period = spec.operations("pass-every", 0),
                                         .one_in = spec.whole("pass-one-in", 1, 1, 1'000'000)});
}

session_load ycsb_load(load_spec& spec, ycsb_settings s) {
    s.workload = spec.name();
    s.distribution = spec.text("distribution", "");
    s.live_share = spec.number("live", s.live_share, 1e-9, 1);
    return make_load(s);
}

session_load trace_load(load_spec& spec, ycsb_settings s) {
    s.trace = spec.text("file");
    s.trace_format = spec.text("format", "auto");
    return make_load(s);
}

} // namespace

kv_load make_kv_load(const kv_settings& settings) {
    const ycsb_settings& s = settings.store;
    load_spec spec(settings.workload, settings.rate);
    const std::string& name = spec.name();
    kv_load made;
    if (name.size() == 1 && name[0] >= 'A' && name[0] <= 'F') {
        made.session = ycsb_load(spec, s);
    } else if (name == "trace") {
        made.session = trace_load(spec, s);
    } else if (name == "mixgraph") {
        made.session = mixgraph_load(spec, s);
        made.sine = {spec.number("sine-a", 0, 0, 1e9), spec.number("sine-b", 0, -1e9, 1e9),
                     spec.number("sine-c", 0, -1e9, 1e9)};
    } else {
        changing_load load;
        load.records = s.records;
        load.clients = s.threads;
        load.seed = s.seed;
        load.keys = workload::size_distribution::fixed(s.key_size);
        load.values =
            workload::value_sizes(workload::size_distribution::fixed(s.value_size), load.seed);
        if (name == "uniform") {
            load.position = [ids = workload::uniform_ids(s.records)](
                                std::uint64_t, workload::random_stream& random) {
                return ids.next(random);
            };
        } else if (name == "zipf") {
            load.position =
                scattered(workload::power_law_ids(s.records, spec.number("theta", .99, 0, 20)),
                          s.records, s.seed);
        } else if (name == "hot") {
            load.position = hot_positions(spec, s);
        } else if (name == "cachelib") {
            const auto config = workload::read_cachelib_config(spec.text("config"));
            load.position = scattered(
                workload::popularity_buckets(config.bucket_keys, config.bucket_weights, s.records),
                s.records, s.seed);
            load.keys = config.key_sizes;
            load.values = workload::value_sizes(config.value_sizes, s.seed);
            load.operations = {.update = config.sets, .erase = config.deletes};
            load.lone_reads = config.lone_gets;
        } else if (name == "twitter") {
            const auto cluster = workload::read_cluster_statistics(
                spec.text("statistics"), spec.whole("cluster", 1, 1, any_number));
            load.position = scattered(workload::power_law_ids(s.records, cluster.zipf_exponent),
                                      s.records, s.seed);
            load.keys = workload::size_distribution::fixed(cluster.key_size);
            load.values = workload::value_sizes(
                workload::size_distribution::fixed(cluster.value_size), s.seed);
            load.operations = {.update = cluster.updates,
                               .read_modify_write = cluster.read_modify_writes,
                               .erase = cluster.deletes};
            made.label = "synthetic";
        } else {
            throw std::invalid_argument(
                fmt::format("--workload {}: A to F, uniform, zipf, hot, cachelib, mixgraph, "
                            "twitter or trace is expected",
                            settings.workload));
        }
        take_changes(spec, load);
        made.session = session_load_of(std::move(load), name);
    }
    spec.all_taken();
    return made;
}

} // namespace obase::tools
