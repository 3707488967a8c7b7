// SPDX-License-Identifier: MIT
//
// `obase bench collector`: what a window costs when nothing changes any more, for twenty million
// guides of which 31 % are touched in every window, as a share of a core if windows are the papers'
// 120 s. The collector's own processor time; moves, if there are any left, included. Under graded also
// what it remembers of each guide.
#include "tools/bench/bench.hpp"
#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"

#include <obase/atc.hpp>
#include <obase/guide.hpp>
#include <obase/runtime.hpp>
#include <obase/scope.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr double papers_window_s = 120;
constexpr unsigned live_of_100 = 31;

struct block_64 {
    std::uint64_t identity;
    std::uint64_t rest[7];
};

std::size_t guides_of(const bench_settings& settings) {
    return settings.quick ? 20'000 : 20'000'000;
}

struct case_to_measure {
    const char* protocol;
    const char* policy;
    double target; // 0: none
};

template <class Protocol>
json measure(const bench_settings& settings, const char* policy) {
    const std::size_t count = guides_of(settings);
    runtime& r = runtime::of<Protocol>();
    options o = r.settings();
    o.mode = run_mode::move;
    o.window_seconds = 1e6; // windows are asked for
    o.policy = policy;
    if (const std::string why = r.configure(o); !why.empty()) throw std::runtime_error(why);
    const std::unique_ptr<guide<block_64, Protocol>[]> guides(new guide<block_64, Protocol>[count]);
    for (std::size_t i = 0; i < count; ++i) {
        auto made = make_managed<block_64, Protocol>();
        made->identity = i;
        guides[i] = std::move(made);
    }
    const auto window = [&] {
        constexpr std::size_t per_scope = 1024;
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < count; i += per_scope) {
            const typename Protocol::scope s;
            for (std::size_t k = i; k < std::min(i + per_scope, count); ++k)
                // Scattered, and the same ones in every window.
                if (k * 7919 % 100 < live_of_100) wrong += guides[k]->identity != k;
        }
        if (wrong != 0) throw std::runtime_error("objects are not what they were");
        if (r.collect_now() != collect_result::done)
            throw std::runtime_error("a window could not be completed");
    };
    for (int i = 0; i < 8; ++i) window(); // everything is where it belongs
    json made{{"slot_state_bytes", r.statistics().slot_state_bytes}};
    json& samples = made["window_cpu_seconds"] = json::array();
    for (std::size_t i = 0; i < settings.pairs && !interrupted(); ++i) {
        const double before = r.statistics().collector_cpu_seconds;
        window();
        samples.push_back(r.statistics().collector_cpu_seconds - before);
    }
    return made;
}

} // namespace

bench_result bench_collector(const bench_settings& settings) {
    bench_result result;
    constexpr case_to_measure cases[] = {
        {"arming", "papers", .005}, {"arming", "graded", .008}, {"atc", "papers", 0}};
    for (const case_to_measure& each : cases) {
        if (interrupted()) break;
        const bool graded = each.policy == std::string("graded");
        const std::string what =
            graded ? fmt::format("{}, graded", each.protocol) : std::string(each.protocol);
        tell(fmt::format("windows over 20M guides, {}", what));
        json of = in_child_process(what.c_str(), [&] {
            return each.protocol == std::string("atc") ? measure<atc>(settings, each.policy)
                                                       : measure<arming>(settings, each.policy);
        });
        std::vector<double> shares;
        for (const double s : numbers_of(of["window_cpu_seconds"]))
            shares.push_back(s / papers_window_s);
        const auto add = [&](const std::string& name, const spread& value, double target) {
            figure f;
            f.name = fmt::format("collector, {}, 20M guides{}", what, name);
            f.value = value;
            if (target != 0) {
                f.kind = bound::at_most;
                f.target = target;
            }
            f.command = "obase bench collector";
            result.figures.push_back(f);
        };
        const spread share = spread_of(shares);
        add(", windows of 120 s: share of a core", share, each.target);
        if (graded) {
            const double bytes =
                of["slot_state_bytes"].get<double>() / static_cast<double>(guides_of(settings));
            // Counted, not timed: one value decides.
            add(": what the policy remembers, bytes a guide", {bytes, bytes, bytes, 1, true}, 2);
        }
        of["share_of_core"] = share.median;
        result.json[graded ? "arming_graded" : each.protocol] = of;
    }
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
