// SPDX-License-Identifier: MIT
//
// `obase bench move`: how fast objects move, and how fast slots are scanned.
//
// Everything goes through the public interface, as a program's collections do: collect_now() from
// begin to end, so the scan, the waits, the kernel's page faults and the return of the memory are
// in the time.
//
// A cycle: all objects are touched, and the next window moves all of them to HOT; after two more
// windows without a touch they are older than C_t = 1 and the window moves all of them to COLD.
// Both moving windows are one sample. Busy threads dereference, in scopes of eight dereferences,
// objects of a scattered eighth, Zipf 0.99; the others lie still, as the ones that a collector
// moves do.
#include "tools/bench/bench.hpp"
#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/bench/zipf.hpp"

#include <obase/arming.hpp>
#include <obase/guide.hpp>
#include <obase/runtime.hpp>
#include <obase/scope.hpp>

#if __has_include(<obase/atc.hpp>)
#include <obase/atc.hpp>
#define OBASE_BENCH_ATC 1
#endif

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <thread>

namespace obase::tools {
namespace {

using nlohmann::json;

template <std::size_t Bytes>
struct block {
    std::uint64_t identity;
    unsigned char rest[Bytes - 8];
};
template <>
struct block<8> {
    std::uint64_t identity;
};

constexpr unsigned hot_share = 8; // one object in so many is hot
constexpr unsigned touches_per_scope = 8;

template <class Protocol>
runtime& configured(std::uint64_t cold_threshold) {
    runtime& r = runtime::of<Protocol>();
    options settings = r.settings();
    settings.mode = run_mode::move;
    settings.window_seconds = 1e6; // windows are asked for
    settings.controller = controller_kind::fixed;
    settings.cold_threshold = cold_threshold;
    if (const std::string why = r.configure(settings); !why.empty()) throw std::runtime_error(why);
    if (const std::string why = r.start(); !why.empty()) throw std::runtime_error(why);
    return r;
}

void collect(runtime& r) {
    const collect_result result = r.collect_now();
    if (result == collect_result::abandoned)
        throw std::runtime_error("a window was given up: a busy thread kept its scope open for "
                                 "seconds (is the machine overloaded?)");
    if (result != collect_result::done) throw std::runtime_error("the collector does not run");
}

std::uint64_t moved_objects(const statistics& s) { return s.moved_objects + s.compacted; }

// What a number of windows did.
struct window_sum {
    double seconds = 0;
    double collector_seconds = 0; // of processor time
    double objects = 0;
    double bytes = 0;
    double vetoed = 0;
    double waited = 0;

    void add(runtime& r) {
        const statistics before = r.statistics();
        const double begin = wall_ns();
        collect(r);
        seconds += (wall_ns() - begin) * 1e-9;
        const statistics after = r.statistics();
        collector_seconds += after.collector_cpu_seconds - before.collector_cpu_seconds;
        objects += static_cast<double>(moved_objects(after) - moved_objects(before));
        bytes += static_cast<double>(after.moved_bytes - before.moved_bytes);
        vetoed += static_cast<double>(after.vetoed_moves - before.vetoed_moves);
        waited += after.wait_seconds - before.wait_seconds;
    }
};

template <class Protocol, std::size_t Bytes>
json measure_moving(const bench_settings& settings, unsigned busy_threads) {
    using object = block<Bytes>;
    runtime& r = configured<Protocol>(1);
    const std::size_t count = settings.quick ? 20'000
                              : Bytes <= 64  ? std::size_t{2} << 20
                                             : (std::size_t{512} << 20) / Bytes;
    const std::unique_ptr<guide<object, Protocol>[]> guides(new guide<object, Protocol>[count]);
    for (std::size_t i = 0; i < count; ++i) {
        owner<object, Protocol> made = make_managed<object, Protocol>();
        made->identity = i;
        guides[i] = std::move(made);
    }
    std::atomic<bool> wrong{false};
    const auto touch = [&](std::size_t i) {
        if (guides[i]->identity != i) wrong = true;
    };
    const auto touch_all = [&] {
        constexpr std::size_t per_scope = 1024; // short scopes: no thread waits for this one long
        for (std::size_t i = 0; i < count; i += per_scope) {
            const typename Protocol::scope s;
            for (std::size_t k = i; k < std::min(i + per_scope, count); ++k) touch(k);
        }
    };

    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> touches{0};
    std::vector<std::thread> busy;
    for (unsigned number = 0; number < busy_threads; ++number)
        busy.emplace_back([&, number] {
            auto sequence = zipf_sequence(count / hot_share, std::size_t{1} << 18, 0.99, 7);
            for (std::uint32_t& index : sequence) index *= hot_share;
            std::size_t at = number * sequence.size() / 2;
            std::uint64_t done = 0;
            while (!stop) {
                const typename Protocol::scope s;
                for (unsigned k = 0; k < touches_per_scope; ++k) {
                    touch(sequence[at]);
                    at = (at + 1) % sequence.size();
                }
                done += touches_per_scope;
            }
            touches += done;
        });
    const auto end_of_busy = [&] {
        stop = true;
        for (std::thread& t : busy) t.join();
        busy.clear();
    };

    json rounds = json::array();
    try {
        const auto cycle = [&] {
            window_sum both;
            touch_all();
            both.add(r); // to HOT
            collect(r);
            both.add(r); // to COLD: C_t exceeded
            return both;
        };
        cycle(); // NEW is left behind, page tables and lists have their size
        for (std::size_t pair = 0; pair < settings.pairs && !interrupted(); ++pair) {
            const window_sum done = cycle();
            rounds.push_back({{"objects", done.objects},
                              {"bytes", done.bytes},
                              {"seconds", done.seconds},
                              {"collector_seconds", done.collector_seconds},
                              {"vetoed", done.vetoed},
                              {"waited", done.waited}});
        }
    } catch (...) {
        end_of_busy();
        throw;
    }
    end_of_busy();
    touch_all();
    if (wrong) throw std::runtime_error("an object was read with another one's contents");
    return {{"rounds", rounds}, {"count", count}, {"touches", touches.load()}};
}

template <class Protocol>
json measure_moving(const bench_settings& settings, std::size_t bytes, unsigned busy_threads) {
    switch (bytes) {
    case 16:
        return measure_moving<Protocol, 16>(settings, busy_threads);
    case 64:
        return measure_moving<Protocol, 64>(settings, busy_threads);
    case 256:
        return measure_moving<Protocol, 256>(settings, busy_threads);
    case 1024:
        return measure_moving<Protocol, 1024>(settings, busy_threads);
    case 4096:
        return measure_moving<Protocol, 4096>(settings, busy_threads);
    default:
        throw std::runtime_error("object sizes are 16, 64, 256, 1024 and 4096");
    }
}

// Windows in which nothing moves: all objects are in HOT and C_t is 32. `stride`: bytes from slot
// to slot.
template <class Protocol>
json measure_scan(const bench_settings& settings, bool random) {
    using object = block<8>;
    using guide_type = guide<object, Protocol>;
    runtime& r = configured<Protocol>(32);
    const std::size_t count = settings.quick ? 50'000 : random ? 4'000'000 : 8'000'000;
    const std::size_t stride = random ? 64 : sizeof(guide_type);
    const std::unique_ptr<unsigned char[]> area(new unsigned char[(count + 1) * stride]);
    auto* const base = reinterpret_cast<unsigned char*>(
        (reinterpret_cast<std::uintptr_t>(area.get()) + 63) & ~std::uintptr_t{63});
    // Random: any word of the slot's cache line, and the objects in another order than the slots.
    std::mt19937_64 generator(9);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0U);
    if (random) std::shuffle(order.begin(), order.end(), generator);
    std::vector<guide_type*> guides(count);
    for (const std::uint32_t i : order) {
        const std::size_t word = random ? generator() % 8 : 0;
        guides[i] = ::new (base + i * stride + word * 8) guide_type;
        owner<object, Protocol> made = make_managed<object, Protocol>();
        made->identity = i;
        *guides[i] = std::move(made);
    }
    const auto touch_all = [&] {
        const typename Protocol::scope s;
        for (std::size_t i = 0; i < count; ++i)
            if ((*guides[i])->identity != i) throw std::runtime_error("wrong object");
    };
    const auto window = [&] {
        const statistics before = r.statistics();
        const double begin = wall_ns();
        collect(r);
        const double seconds = (wall_ns() - begin) * 1e-9;
        const statistics after = r.statistics();
        if (after.scanned_guides - before.scanned_guides < count)
            throw std::runtime_error("a scan left slots out");
        return std::pair(static_cast<double>(count) / seconds,
                         static_cast<double>(count) /
                             (after.collector_cpu_seconds - before.collector_cpu_seconds));
    };
    touch_all();
    collect(r); // all to HOT
    touch_all();
    collect(r); // armed again, in HOT
    json armed, armed_cpu, touched, touched_cpu;
    for (std::size_t pair = 0; pair < settings.pairs && !interrupted(); ++pair) {
        const std::uint64_t moves = moved_objects(r.statistics());
        const auto [rate, cpu_rate] = window();
        armed.push_back(rate);
        armed_cpu.push_back(cpu_rate);
        touch_all();
        const auto [touched_rate, touched_cpu_rate] = window();
        touched.push_back(touched_rate);
        touched_cpu.push_back(touched_cpu_rate);
        if (moved_objects(r.statistics()) != moves)
            throw std::runtime_error("objects moved while scans were timed");
    }
    for (guide_type* g : guides) g->~guide_type();
    return {{"armed", armed},
            {"armed_cpu", armed_cpu},
            {"touched", touched},
            {"touched_cpu", touched_cpu}};
}

template <class F>
json for_protocol(const std::string& protocol, F&& work) {
    if (protocol == "arming") return work(static_cast<arming*>(nullptr));
#if OBASE_BENCH_ATC
    if (protocol == "atc") return work(static_cast<atc*>(nullptr));
#endif
    throw std::runtime_error("this build has no protocol '" + protocol + "'");
}

std::vector<std::string> default_protocols() {
#if OBASE_BENCH_ATC
    return {"arming", "atc"};
#else
    return {"arming"};
#endif
}

template <class T>
std::vector<T> or_else(const std::vector<T>& asked, const std::vector<T>& usual) {
    return asked.empty() ? usual : asked;
}

void add_moving(bench_result& result, const std::string& protocol, std::size_t bytes, unsigned busy,
                const json& measured) {
    std::vector<double> objects_rate, bytes_rate, cpu_rate, veto, waiting;
    for (const json& round : measured.at("rounds")) {
        const double objects = round.at("objects");
        const double seconds = round.at("seconds");
        const double vetoed = round.at("vetoed");
        objects_rate.push_back(objects / seconds);
        bytes_rate.push_back(round.at("bytes").get<double>() / seconds);
        cpu_rate.push_back(round.at("bytes").get<double>() /
                           round.at("collector_seconds").get<double>());
        veto.push_back(objects + vetoed > 0 ? vetoed / (objects + vetoed) : 0);
        waiting.push_back(round.at("waited").get<double>() / seconds);
    }
    const std::string what = fmt::format("moving, {}, {} B, {} busy", protocol, bytes, busy);
    const std::string command = fmt::format(
        "obase bench move --protocol {} --object-bytes {} --busy {}", protocol, bytes, busy);
    figure by_objects{what + ": objects", "objects/s", spread_of(objects_rate),
                      bound::none,        0,           command};
    figure by_bytes{what + ": bytes", "B/s", spread_of(bytes_rate), bound::none, 0, command};
    if (protocol == "arming" && bytes == 1024 && (busy == 0 || busy == 2)) {
        by_bytes.kind = bound::at_least;
        by_bytes.target = busy == 0 ? 1e9 : 0.4e9;
    }
    if (protocol == "arming" && bytes == 64 && busy == 0) {
        by_objects.kind = bound::at_least;
        by_objects.target = 2e6;
    }
    result.json["runs"].push_back({{"protocol", protocol},
                                   {"object_bytes", bytes},
                                   {"busy_threads", busy},
                                   {"objects_per_s", by_objects.value.median},
                                   {"bytes_per_s", by_bytes.value.median},
                                   {"veto_rate", spread_of(veto).median},
                                   {"wait_share", spread_of(waiting).median},
                                   {"bytes_per_collector_cpu_s", spread_of(cpu_rate).median}});
    result.figures.push_back(by_objects);
    result.figures.push_back(by_bytes);
    result.figures.push_back({what + ": veto rate", "", spread_of(veto), bound::none, 0, command});
    result.figures.push_back({what + ": bytes per second of collector CPU", "B/s",
                              spread_of(cpu_rate), bound::none, 0, command});
}

void add_scan(bench_result& result, const std::string& protocol, bool random,
              const json& measured) {
    const std::string place = random ? "random" : "sequential";
    for (const char* state : {"armed", "touched"}) {
        for (const char* clock : {"", "_cpu"}) {
            figure f;
            f.name = fmt::format("scan, {}, {} slots, {}{}", protocol, place, state,
                                 *clock != '\0' ? ", per second of collector CPU" : "");
            f.unit = "guides/s";
            f.value = spread_of(numbers_of(measured.at(std::string(state) + clock)));
            f.command = fmt::format("obase bench move --protocol {}", protocol);
            if (protocol == "arming" && std::string(state) == "armed" && *clock == '\0') {
                f.kind = bound::at_least;
                f.target = random ? 20e6 : 50e6;
                if (!random) result.json["scan_guides_per_s"] = f.value.median;
            }
            result.json["scan"][protocol][place][std::string(state) + clock] = f.value.median;
            result.figures.push_back(f);
        }
    }
}

} // namespace

bench_result bench_move(const bench_settings& settings) {
    bench_result result;
    result.json["runs"] = json::array();
    result.json["scan_guides_per_s"] = nullptr;
    const auto protocols = or_else(settings.protocols, default_protocols());
    const auto sizes = or_else(settings.object_bytes, {64, 1024});
    const auto busy_counts = or_else(settings.busy_threads, {0, 2});
    for (const std::string& protocol : protocols) {
        for (const std::size_t bytes : sizes)
            for (const unsigned busy : busy_counts) {
                if (interrupted()) break;
                const std::string what =
                    fmt::format("move: {}, {} B, {} busy", protocol, bytes, busy);
                tell(what);
                const json measured = in_child_process(what, [&] {
                    return for_protocol(protocol, [&]<class P>(P*) {
                        return measure_moving<P>(settings, bytes, busy);
                    });
                });
                if (!measured.at("rounds").empty())
                    add_moving(result, protocol, bytes, busy, measured);
            }
        for (const bool random : {false, true}) {
            if (interrupted()) break;
            const std::string what =
                fmt::format("move: scan, {}, {} slots", protocol, random ? "random" : "sequential");
            tell(what);
            const json measured = in_child_process(what, [&] {
                return for_protocol(protocol,
                                    [&]<class P>(P*) { return measure_scan<P>(settings, random); });
            });
            if (!measured.at("armed").empty()) add_scan(result, protocol, random, measured);
        }
    }
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
