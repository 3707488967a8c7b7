// SPDX-License-Identifier: MIT
//
// `obase bench collector`: what a window costs when nothing changes any more, for twenty million
// guides of which 31 % are touched in every window, as a share of a core if windows are the papers'
// 120 s. The collector's own processor time; moves, if there are any left, included.
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

template <class Protocol>
json measure(const bench_settings& settings) {
    const std::size_t count = settings.quick ? 20'000 : 20'000'000;
    runtime& r = runtime::of<Protocol>();
    options o = r.settings();
    o.mode = run_mode::move;
    o.window_seconds = 1e6; // windows are asked for
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
    json samples = json::array();
    for (std::size_t i = 0; i < settings.pairs && !interrupted(); ++i) {
        const double before = r.statistics().collector_cpu_seconds;
        window();
        samples.push_back(r.statistics().collector_cpu_seconds - before);
    }
    return samples;
}

} // namespace

bench_result bench_collector(const bench_settings& settings) {
    bench_result result;
    for (const char* protocol : {"arming", "atc"}) {
        if (interrupted()) break;
        tell(fmt::format("windows over 20M guides, {}", protocol));
        const json seconds = in_child_process(protocol, [&] {
            return protocol == std::string("atc") ? measure<atc>(settings)
                                                  : measure<arming>(settings);
        });
        std::vector<double> shares;
        for (const double s : numbers_of(seconds)) shares.push_back(s / papers_window_s);
        figure f;
        f.name =
            fmt::format("collector, {}, 20M guides, windows of 120 s: share of a core", protocol);
        f.value = spread_of(shares);
        if (protocol == std::string("arming")) {
            f.kind = bound::at_most;
            f.target = 0.005;
        }
        f.command = "obase bench collector";
        result.figures.push_back(f);
        result.json[protocol] = {{"window_cpu_seconds", seconds},
                                 {"share_of_core", f.value.median}};
    }
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
