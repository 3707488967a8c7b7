// SPDX-License-Identifier: MIT
#include "tools/ycsb/huge_pages.hpp"

#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/process_memory.hpp"
#include "tools/ycsb/traffic.hpp"

#include <obase/runtime.hpp>
#include <obase/statistics.hpp>

#include <fmt/format.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace obase::tools {
namespace {

using nlohmann::json;

enum class huge { none, hot, all };
constexpr const char* advised[] = {"none", "hot", "all"};

// Advises every mapping of the heaps, what is only reserved too: it keeps the advice when it is
// committed.
void advise_heaps(const runtime& r) {
    std::ifstream in("/proc/self/maps");
    for (std::string line; std::getline(in, line);) {
        std::uintptr_t begin = 0, end = 0;
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2 &&
            r.heap_of(reinterpret_cast<const void*>(begin)) >= 0)
            ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
    }
}

std::uint64_t huge_bytes() {
    std::ifstream in("/proc/self/smaps_rollup");
    for (std::string line; std::getline(in, line);) {
        std::uint64_t kib = 0;
        if (std::sscanf(line.c_str(), "AnonHugePages: %" SCNu64, &kib) == 1) return kib * 1024;
    }
    return 0;
}

struct slice_result {
    double rate = 0;
    std::uint64_t rss = 0;
    std::uint64_t huge = 0;
};

// The side of the child: loads, converges, and then runs a slice for every byte that comes.
void serve(const ycsb_settings& settings, huge which, double slice_s, int in, int out) {
    session_load load = make_load(settings);
    options o;
    o.mode = which == huge::hot ? run_mode::hint : run_mode::move;
    o.hint_cold = o.hint_pageout = false;
    o.hint_hugepage = which == huge::hot;
    o.window_seconds = 1e6; // windows are asked for
    runtime& r = crestdb::store::runtime_of(settings.protocol);
    if (const std::string why = r.configure(o); !why.empty()) throw std::runtime_error(why);
    const auto store = crestdb::store::open({settings.index, settings.protocol, settings.records});
    if (which == huge::all) advise_heaps(r);
    fill_store(*store, *load.records, settings.threads);
    value_ledger ledger(1);
    std::vector<std::unique_ptr<client>> clients;
    for (unsigned t = 0; t < settings.threads; ++t)
        clients.push_back(std::make_unique<client>(*store, *load.records, ledger, load.source(t),
                                                   client_options{false, false}));
    traffic requests(std::move(clients));
    const auto slice = [&](double seconds) {
        const std::uint64_t before = requests.operations();
        const double begin = wall_ns();
        requests.resume();
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        requests.pause();
        return static_cast<double>(requests.operations() - before) / ((wall_ns() - begin) * 1e-9);
    };
    for (int window = 0; window < 8; ++window) {
        if (which == huge::all) advise_heaps(r); // what was committed since
        slice(slice_s);
        if (r.collect_now() != collect_result::done)
            throw std::runtime_error("a window could not be completed");
    }
    if (which == huge::all) advise_heaps(r);
    const memory_meter meter("", nullptr);
    const auto answer = [&](double rate) {
        const slice_result result{rate, meter.sample().rss, huge_bytes()};
        if (::write(out, &result, sizeof result) != sizeof result) ::_exit(1);
    };
    answer(0);
    for (char byte; ::read(in, &byte, 1) == 1;) answer(slice(slice_s));
}

class store_on_pages {
  public:
    store_on_pages(const ycsb_settings& settings, huge which, double slice_s) {
        int to[2], from[2];
        if (::pipe(to) != 0 || ::pipe(from) != 0) throw std::runtime_error("no pipe");
        std::fflush(nullptr);
        child_ = ::fork();
        if (child_ < 0) throw std::runtime_error("no process");
        if (child_ == 0) {
            ::close(to[1]);
            ::close(from[0]);
            try {
                serve(settings, which, slice_s, to[0], from[1]);
            } catch (const std::exception& error) {
                fmt::print(stderr, "obase: huge pages, {}: {}\n",
                           advised[static_cast<std::size_t>(which)], error.what());
                ::_exit(1);
            }
            ::_exit(0);
        }
        ::close(to[0]);
        ::close(from[1]);
        to_ = to[1];
        from_ = from[0];
    }
    ~store_on_pages() {
        ::close(to_);
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
        ::close(from_);
    }
    store_on_pages(const store_on_pages&) = delete;
    store_on_pages& operator=(const store_on_pages&) = delete;

    void begin_slice() {
        const char byte = 1;
        if (::write(to_, &byte, 1) != 1) throw std::runtime_error("a store ended");
    }
    slice_result answer() {
        slice_result result;
        if (::read(from_, &result, sizeof result) != sizeof result)
            throw std::runtime_error("a store ended");
        return result;
    }

  private:
    pid_t child_ = -1;
    int to_ = -1, from_ = -1;
};

} // namespace

bench_result bench_huge_pages(const ycsb_settings& settings, std::size_t pairs, double slice_s) {
    if (const std::string why = why_not(settings); !why.empty()) throw std::invalid_argument(why);
    std::signal(SIGPIPE, SIG_IGN);
    std::unique_ptr<store_on_pages> all[3];
    slice_result last[3];
    for (std::size_t i = 0; i < 3; ++i) { // one after the other: loading takes both cores
        tell(fmt::format("loading, huge pages: {}", advised[i]));
        all[i] = std::make_unique<store_on_pages>(settings, static_cast<huge>(i), slice_s);
        last[i] = all[i]->answer();
    }
    std::vector<double> ratios[3];
    for (std::size_t pair = 0; pair < pairs && !interrupted(); ++pair) {
        double rates[3] = {};
        for (std::size_t k = 0; k < 3; ++k) {
            const std::size_t which = (k + pair) % 3;
            all[which]->begin_slice();
            last[which] = all[which]->answer();
            rates[which] = last[which].rate;
        }
        for (std::size_t i = 0; i < 3; ++i) ratios[i].push_back(rates[i] / rates[0]);
    }
    bench_result result;
    const std::string command = "obase bench huge-pages";
    for (std::size_t i = 0; i < 3; ++i) {
        const auto add = [&](const std::string& what, const std::string& unit,
                             const spread& value) {
            figure f;
            f.name = fmt::format("huge pages {}: {}", advised[i], what);
            f.unit = unit;
            f.value = value;
            f.command = command;
            result.figures.push_back(f);
        };
        const spread ratio = spread_of(ratios[i]);
        if (i != 0) add("throughput / none", "", ratio);
        add("resident set", "MiB", spread_of({static_cast<double>(last[i].rss) / 1048576}));
        add("of that huge", "MiB", spread_of({static_cast<double>(last[i].huge) / 1048576}));
        result.json[advised[i]] = {{"throughput_ratio", ratio.median},
                                   {"ci95", {ratio.low, ratio.high}},
                                   {"rss_bytes", last[i].rss},
                                   {"huge_bytes", last[i].huge}};
    }
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
