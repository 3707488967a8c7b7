// SPDX-License-Identifier: MIT
#include "tools/mrc/mrc.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/mrc/object_census.hpp"
#include "tools/mrc/popularity.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/store_options.hpp"

#include "crestdb/store.hpp"
#include "policy/policies.hpp"

#include <obase/runtime.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr double hit_ratios[] = {.8, .9, .95, .99};
constexpr double memory_shares[] = {.1, .2, .5}; // of the bytes of all objects, for CLOCK
constexpr double paper_window_s = 120;
constexpr std::size_t plotted_points = 200; // of each curve in the JSON

popularity popularity_of(const mrc_settings& s) {
    if (s.load == "hotspot")
        return popularity::hotspot(s.records, s.hot_data, s.hot_accesses, s.seed);
    if (s.load == "uniform") return popularity::uniform(s.records, s.seed);
    if (s.load == "trace")
        return popularity::recorded(
            std::make_shared<const workload::trace>(workload::read_trace(s.trace)));
    return popularity::zipfian(s.records, s.theta, s.seed);
}

std::string why_not_measured(const mrc_settings& s) {
    if (const std::string why = why_no_popularity(s); !why.empty()) return why;
    if (s.load == "trace" && s.trace.empty()) return "--load trace: --trace FILE is missing";
    if (s.load != "trace" && !s.trace.empty())
        return fmt::format("--trace {}: only with --load trace", s.trace);
    for (const double n : s.accesses_per_object)
        if (!(n > 0 && n <= 1e6))
            return fmt::format("--accesses-per-object {}: more than 0 and at most 1000000", n);
    if (!(s.window_accesses > 0 && s.window_accesses <= 1e6))
        return fmt::format("--window-accesses {}: more than 0 and at most 1000000",
                           s.window_accesses);
    for (const std::uint64_t bytes : s.page_bytes)
        if (bytes < 64 || bytes > (std::uint64_t{1} << 30) || (bytes & (bytes - 1)) != 0)
            return fmt::format("--page-bytes {}: a power of two from 64 to 1073741824", bytes);
    return "";
}

ycsb_settings store_settings(const mrc_settings& s) {
    ycsb_settings y = store_settings_of(s);
    y.trace = s.trace;
    return y;
}

// Reads a store, on several threads, as many records as asked for.
class reader {
  public:
    reader(const crestdb::store& store, const record_set& records, const popularity& asked,
           unsigned threads)
        : store_(store), records_(records) {
        for (unsigned t = 0; t < threads; ++t) streams_.push_back(asked.stream_of(t, threads));
    }
    void read(std::uint64_t requests) {
        const std::uint64_t threads = streams_.size();
        std::vector<std::thread> pool;
        for (std::uint64_t t = 0; t < threads; ++t)
            pool.emplace_back([this, t, mine = (requests + t) / threads] {
                std::vector<char> buffer(records_.largest_key());
                for (std::uint64_t i = 0; i < mine && !interrupted(); ++i)
                    store_.get(records_.key(streams_[t].next(), buffer), [](std::string_view) {});
            });
        for (std::thread& t : pool) t.join();
    }

  private:
    const crestdb::store& store_;
    const record_set& records_;
    std::vector<popularity::stream> streams_;
};

void configure(runtime& of, const options& settings) {
    if (const std::string why = of.configure(settings); !why.empty()) throw std::runtime_error(why);
}

// In a process of its own.
json measure_layout(const mrc_settings& s, const std::string& layout, double accesses) {
    const bool plain = layout == "malloc";
    const std::string protocol = plain ? "none" : "arming";
    runtime& managed = crestdb::store::runtime_of(protocol);
    options settings = options::from_environment();
    settings.mode = run_mode::off;
    settings.window_seconds = 1e6;
    if (!plain) settings.policy = layout;
    configure(managed, settings);

    const popularity asked = popularity_of(s);
    const session_load load = make_load(store_settings(s));
    const auto store =
        crestdb::store::open({s.index, protocol, static_cast<std::size_t>(load.records->count())});
    fill_store(*store, *load.records, 1); // in the order of the records
    reader clients(*store, *load.records, asked, s.threads);

    const auto records = static_cast<double>(load.records->count());
    const auto per_window = static_cast<std::uint64_t>(std::ceil(records * s.window_accesses));
    auto left = static_cast<std::uint64_t>(records * accesses);
    // How long a window takes here, so that the policy sees it as the papers' 120 seconds. These
    // reads are not counted.
    const double begin = wall_ns();
    clients.read(std::min(left, per_window));
    const double window_s = std::max(1e-3, (wall_ns() - begin) * 1e-9);
    if (!plain) {
        settings.time_scale = std::clamp(paper_window_s / window_s, 1.0, 1e5);
        settings.mode = run_mode::move;
        configure(managed, settings);
        managed.set_mode(run_mode::move);
    }
    const auto collect = [&] {
        if (plain) return;
        if (managed.collect_now() != collect_result::done)
            throw std::runtime_error("a window could not be completed");
    };
    collect(); // arms every slot
    while (left != 0 && !interrupted()) {
        const std::uint64_t now = std::min(left, per_window);
        clients.read(now);
        collect();
        left -= now;
    }
    if (interrupted()) throw interruption("interrupted before the layout was made");
    if (!plain) managed.set_mode(run_mode::off);

    const object_census census(*store, *load.records, asked, s.threads);
    return mrc_cells(census, asked, s, layout, accesses);
}

json inflation_at(const miss_ratio_curve& objects, const miss_ratio_curve& pages) {
    json at = json::object();
    for (const double h : hit_ratios) {
        const auto found = inflation(objects, pages, h);
        at[fmt::format("{}", h)] = found ? json(*found) : json(nullptr);
    }
    return at;
}

json clock_hit_ratios(const object_census& census, const popularity& asked, std::uint64_t requests,
                      std::uint64_t page_bytes) {
    json at = json::object();
    const auto all = static_cast<double>(census.bytes_of(object_kind::all));
    for (const double share : memory_shares)
        at[fmt::format("{}", share)] = census.clock_hit_ratio(
            asked, requests, page_bytes, static_cast<std::uint64_t>(share * all));
    return at;
}

// At most `plotted_points` of them, evenly in hit ratio.
json points_of(const miss_ratio_curve& curve) {
    json points = json::array();
    for (std::size_t i = 0; i <= plotted_points; ++i) {
        const double h = static_cast<double>(i) / plotted_points;
        if (const auto bytes = curve.bytes_for(h)) points.push_back({*bytes, h});
    }
    return points;
}

std::string command_of(const mrc_settings& s, const std::string& layout, double accesses) {
    std::string text = fmt::format("obase mrc --load {}", s.load);
    if (s.load == "zipf") text += fmt::format(" --theta {}", s.theta);
    if (s.load == "hotspot")
        text += fmt::format(" --hot-data {} --hot-accesses {}", s.hot_data, s.hot_accesses);
    if (s.load == "trace")
        text += fmt::format(" --trace {}", s.trace);
    else
        text += fmt::format(" --records {}", s.records);
    return text + fmt::format(" --key-size {} --value-size {} --index {} --layout {} "
                              "--accesses-per-object {} --window-accesses {} --page-bytes {} "
                              "--seed {}",
                              s.key_size, s.value_size, s.index, layout, accesses,
                              s.window_accesses, fmt::join(s.page_bytes, ","), s.seed);
}

void summarize(bench_result& result, const json& cells, const std::string& command) {
    for (const json& cell : cells) {
        if (cell["order"] != "static" || cell["objects"] == "nodes" || cell["objects"] == "keys")
            continue;
        const json& value = cell["inflation"]["0.9"];
        if (!value.is_number()) continue;
        figure f;
        const json& size = cell["value_bytes"];
        f.name = fmt::format("{}{}, {}, {} accesses, {} in pages of {}: inflation at .9",
                             cell["workload"].get<std::string>(),
                             size.is_null() ? "" : fmt::format(", {} B", size.get<std::size_t>()),
                             cell["layout"].get<std::string>(),
                             cell["accesses_per_object"].get<double>(),
                             cell["objects"].get<std::string>(), cell["page_bytes"].get<int>());
        f.value.median = f.value.low = f.value.high = value.get<double>();
        f.value.samples = 1;
        f.value.trusted = true; // counted, not timed
        f.command = command;
        result.figures.push_back(f);
    }
}

} // namespace

std::vector<std::string> mrc_layouts() {
    std::vector<std::string> all{"malloc"};
    policy::policies().each([&](const char* name) { all.emplace_back(name); });
    return all;
}

nlohmann::json mrc_cells(const object_census& census, const popularity& asked,
                         const mrc_settings& s, const std::string& layout,
                         double accesses_per_object) {
    json cells = json::array();
    const auto add = [&](object_kind kind, std::uint64_t page_bytes, const char* order,
                         const miss_ratio_curve& objects, const miss_ratio_curve& pages) {
        cells.push_back(
            {{"workload", asked.name()},
             {"layout", layout},
             {"objects", name_of(kind)},
             {"object_bytes", census.bytes_of(kind)},
             {"value_bytes", s.load == "trace" ? json(nullptr) : json(s.value_size)},
             {"page_bytes", page_bytes},
             {"accesses_per_object", accesses_per_object},
             {"order", order},
             {"clock_hit_ratio", nullptr},
             {"inflation", inflation_at(objects, pages)},
             {"curve", {{"objects", points_of(objects)}, {"pages", points_of(pages)}}}});
    };
    for (const object_kind kind :
         {object_kind::all, object_kind::key, object_kind::value, object_kind::node}) {
        if (census.bytes_of(kind) == 0) continue;
        const miss_ratio_curve objects = census.curve_of_objects(kind);
        for (const std::uint64_t bytes : s.page_bytes)
            add(kind, bytes, "static", objects, census.curve_of_pages(kind, bytes));
    }
    const std::uint64_t requests = std::min(s.lru_requests, 16 * asked.records());
    if (requests != 0) {
        const miss_ratio_curve objects = census.lru_curve(asked, requests, 0);
        for (const std::uint64_t bytes : s.page_bytes) {
            add(object_kind::all, bytes, "lru", objects, census.lru_curve(asked, requests, bytes));
            cells.back()["clock_hit_ratio"] = clock_hit_ratios(census, asked, requests, bytes);
        }
    }
    return cells;
}

bench_result measure_mrc(const mrc_settings& settings) {
    if (const std::string why = why_not_measured(settings); !why.empty())
        throw std::invalid_argument(why);
    if (const std::string why = why_not(store_settings(settings)); !why.empty())
        throw std::invalid_argument(why);
    const std::vector<std::string> layouts =
        settings.layouts.empty() ? mrc_layouts() : settings.layouts;
    bench_result result;
    result.json["cells"] = json::array();
    for (const double accesses : settings.accesses_per_object)
        for (const std::string& layout : layouts) {
            if (interrupted()) {
                result.partial = true;
                return result;
            }
            const std::string command = command_of(settings, layout, accesses);
            tell(command);
            json cells;
            try {
                cells = in_child_process(
                    command, [&] { return measure_layout(settings, layout, accesses); });
            } catch (const interruption&) {
                result.partial = true;
                return result;
            }
            summarize(result, cells, command);
            for (json cell : cells) {
                cell["command"] = command;
                result.json["cells"].push_back(std::move(cell));
            }
        }
    return result;
}

bench_result measure_mrc_targets(bool quick) {
    bench_result all;
    all.json["cells"] = json::array();
    for (const std::size_t value_bytes : {std::size_t{128}, std::size_t{1024}}) {
        mrc_settings s;
        s.value_size = value_bytes;
        s.records = value_bytes == 128 ? 4'000'000 : 1'000'000;
        if (quick) s.records = 20'000;
        bench_result one = measure_mrc(s);
        all.partial = all.partial || one.partial;
        for (json& cell : one.json["cells"]) all.json["cells"].push_back(std::move(cell));
        all.figures.insert(all.figures.end(), one.figures.begin(), one.figures.end());
        if (all.partial) break;
    }
    return all;
}

} // namespace obase::tools
