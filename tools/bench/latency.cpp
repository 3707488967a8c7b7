// SPDX-License-Identifier: MIT
//
// `obase bench latency`: how long the longest operations of a thread take while the collector is at
// work, and while it is at rest. One thread allocates and frees (256 bytes, and LARGE objects of 128
// KiB, with their initialization), enters scopes, dereferences and forks, and times each operation by
// itself; slices with the collector at work take turns with slices at rest.
//
// At work means windows without a pause between them, in which objects are born, go to HOT, to COLD and
// back, and memory goes back to the system.
//
// The time in which the kernel let the thread wait for a processor is no doing of obase, nor of the
// operation that it hit. It is read after each long operation from /proc/thread-self/schedstat, taken
// off where it occurred, and reported apart. What part of it is the collector's own use of the processor
// cannot be told.
#include "tools/bench/bench.hpp"
#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"

#include <obase/atc.hpp>
#include <obase/guide.hpp>
#include <obase/runtime.hpp>
#include <obase/scope.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace obase::tools {
namespace {

using nlohmann::json;

constexpr const char* command = "obase bench latency";

enum operation : unsigned {
    allocate,
    deallocate,
    scope,
    dereference,
    allocate_large,
    free_large,
    fork_process,
    operations
};
constexpr const char* names[operations] = {"allocate",       "free",       "scope", "dereference",
                                           "allocate_large", "free_large", "fork"};
constexpr const char* states[2] = {"rest", "work"};

std::uint64_t now_ns() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

// Nanoseconds for which the calling thread was ready to run and did not; 0 if the kernel does not say.
class run_queue {
  public:
    run_queue() : file_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}
    ~run_queue() {
        if (file_ >= 0) ::close(file_);
    }
    run_queue(const run_queue&) = delete;
    run_queue& operator=(const run_queue&) = delete;

    bool known() const noexcept { return file_ >= 0; }
    // Since the last call.
    std::uint64_t delay() noexcept {
        unsigned long long run = 0, waited = 0;
        char text[128];
        const ssize_t length = file_ < 0 ? -1 : ::pread(file_, text, sizeof text - 1, 0);
        if (length <= 0) return 0;
        text[length] = 0;
        if (std::sscanf(text, "%llu %llu", &run, &waited) != 2) return 0;
        return waited - std::exchange(before_, waited);
    }

  private:
    int file_;
    unsigned long long before_ = 0;
};

// Times of one operation in one state, in nanoseconds.
struct times {
    std::vector<std::uint32_t> whole, own; // own: without the run queue
    std::uint64_t queued = 0;

    void add(std::uint64_t ns, std::uint64_t waited) {
        waited = std::min(waited, ns);
        whole.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(ns, ~0U)));
        own.push_back(static_cast<std::uint32_t>(std::min<std::uint64_t>(ns - waited, ~0U)));
        queued += waited;
    }
    void clear() {
        whole.clear();
        own.clear();
        queued = 0;
    }
};

// The time that one operation in 10,000 exceeds; of fewer the longest.
double p9999(std::vector<std::uint32_t>& ns) {
    const std::size_t above = ns.size() / 10'000;
    const auto at = ns.end() - static_cast<std::ptrdiff_t>(above) - 1;
    std::nth_element(ns.begin(), at, ns.end());
    return *at;
}

struct block_256 {
    std::uint64_t identity;
    std::uint64_t rest[31]; // 256 bytes
};

struct large_block { // has pages of its own
    std::uint64_t rest[16 * 1024];
};

template <class Protocol>
class measured {
  public:
    explicit measured(const bench_settings& settings)
        : settings_(settings), count_(settings.quick ? 20'000 : 400'000),
          turns_(settings.quick ? 500 : 20'000), slices_(settings.quick ? 2 : 10),
          forks_(settings.quick ? 1 : 4), runtime_(runtime::of<Protocol>()) {
        options o = runtime_.settings();
        o.mode = run_mode::move;
        o.window_seconds = 1e6; // windows are asked for
        o.cold_threshold = 1;
        if (const std::string why = runtime_.configure(o); !why.empty())
            throw std::runtime_error(why);
        for (auto* table : {&mine_, &others_}) {
            *table = std::vector<guide<block_256, Protocol>>(count_ / 2);
            for (std::size_t i = 0; i < table->size(); ++i) fill((*table)[i], i);
        }
    }

    json run() {
        std::thread working_thread([this] { work(); });
        json pairs = json::array();
        for (std::size_t pair = 0; pair < settings_.pairs && !interrupted(); ++pair)
            pairs.push_back(one_pair());
        state_ = ending;
        working_thread.join();
        return {
            {"run_queue_known", queue_.known()}, {"windows", windows_.load()}, {"pairs", pairs}};
    }

  private:
    enum : int { resting, working, ending };

    static void fill(guide<block_256, Protocol>& slot, std::size_t identity) {
        auto made = make_managed<block_256, Protocol>();
        made->identity = identity;
        slot = std::move(made);
    }

    // The thread that keeps the collector at work.
    void work() {
        for (std::size_t window = 0; state_ != ending;) {
            if (state_ == resting) {
                busy_ = false;
                std::this_thread::yield();
                continue;
            }
            busy_ = true;
            // Another eighth each time: it is replaced in part, and touched.
            const std::size_t eighth = others_.size() / 8;
            const std::size_t first = window++ % 8 * eighth;
            for (std::size_t i = first; i < first + eighth; ++i) {
                if (i % 4 == 0) fill(others_[i], i);
                const typename Protocol::scope s;
                wrong_ += others_[i]->identity != i;
            }
            (void)runtime_.collect_now();
            ++windows_;
        }
    }

    json one_pair() {
        for (auto& state : times_)
            for (times& t : state) t.clear();
        for (unsigned i = 0; i < slices_; ++i)
            for (unsigned k = 0; k < 2; ++k) slice((i + k) % 2);
        if (wrong_ != 0) throw std::runtime_error("objects are not what they were");
        json result;
        for (unsigned state = 0; state < 2; ++state)
            for (unsigned op = 0; op < operations; ++op) {
                times& t = times_[state][op];
                result[states[state]][names[op]] = {
                    {"samples", t.own.size()},
                    {"p9999_ns", p9999(t.own)},
                    {"max_ns", *std::max_element(t.own.begin(), t.own.end())},
                    {"p9999_with_run_queue_ns", p9999(t.whole)},
                    {"max_with_run_queue_ns", *std::max_element(t.whole.begin(), t.whole.end())},
                    {"run_queue_ns", t.queued}};
            }
        return result;
    }

    void slice(unsigned state) {
        state_ = state == 1 ? working : resting;
        const std::uint64_t before = windows_.load();
        // At work: a window has ended, and the next one is under way.
        while (state == 1 ? windows_.load() == before : busy_.load()) std::this_thread::yield();
        (void)queue_.delay();
        last_ns_ = now_ns();
        std::array<times, operations>& to = times_[state];
        // More at a time than a thread's caches hold.
        std::array<owner<block_256, Protocol>, group> made;
        // Elsewhere in each slice, so that objects get idle and come back.
        std::size_t at = slices_done_++ % 4 * (mine_.size() / 4);
        for (std::size_t turn = 0; turn < turns_; ++turn) {
            skip();
            if (turn % group == 0) {
                for (auto& one : made) {
                    one = make_managed<block_256, Protocol>();
                    lap(to[allocate]);
                }
                for (auto& one : made) {
                    one.reset();
                    lap(to[deallocate]);
                }
            }
            {
                const typename Protocol::scope s;
            }
            lap(to[scope]);
            at = (at + 7919) % mine_.size();
            {
                const typename Protocol::scope s;
                wrong_ += mine_[at]->identity != at;
            }
            lap(to[dereference]);
        }
        for (unsigned i = 0; i < 10 * forks_; ++i) {
            skip();
            auto one = make_managed<large_block, Protocol>();
            lap(to[allocate_large]);
            one.reset();
            lap(to[free_large]);
        }
        for (unsigned i = 0; i < forks_; ++i) {
            skip();
            const pid_t child = ::fork();
            if (child == 0) ::_exit(0);
            lap(to[fork_process]);
            if (child < 0) throw std::runtime_error(fmt::format("fork: {}", std::strerror(errno)));
            int status = 0;
            while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
        }
    }

    static constexpr std::size_t group = 500;
    static constexpr std::uint64_t long_ns = 10'000; // a wait for a processor is longer

    void skip() {
        const std::uint64_t now = now_ns();
        if (now - last_ns_ >= long_ns) (void)queue_.delay();
        last_ns_ = now_ns();
    }
    void lap(times& to) {
        const std::uint64_t ns = now_ns() - last_ns_;
        to.add(ns, ns >= long_ns ? queue_.delay() : 0);
        last_ns_ = now_ns();
    }

    const bench_settings& settings_;
    const std::size_t count_, turns_;
    const unsigned slices_, forks_;
    runtime& runtime_;
    std::vector<guide<block_256, Protocol>> mine_, others_;
    run_queue queue_;
    std::uint64_t last_ns_ = 0;
    std::size_t slices_done_ = 0;
    std::array<std::array<times, operations>, 2> times_;
    std::atomic<int> state_{resting};
    std::atomic<bool> busy_{false};
    std::atomic<std::uint64_t> windows_{0};
    std::atomic<std::uint64_t> wrong_{0};
};

// Of the same operation and state over all pairs.
std::vector<double> column(const json& pairs, const char* state, const char* op, const char* what) {
    std::vector<double> values;
    for (const json& pair : pairs) values.push_back(pair[state][op][what].get<double>());
    return values;
}

} // namespace

bench_result bench_latency(const bench_settings& settings) {
    bench_result result;
    for (const char* protocol : {"arming", "atc"}) {
        if (interrupted()) break;
        tell(fmt::format("the longest operations, {}", protocol));
        json measured_json = in_child_process(protocol, [&] {
            return protocol == std::string("atc") ? measured<atc>(settings).run()
                                                  : measured<arming>(settings).run();
        });
        const json& pairs = measured_json["pairs"];
        for (const char* op : names)
            for (const char* state : {"work", "rest"}) {
                figure f;
                f.unit = "ns";
                f.command = command;
                f.name = fmt::format("{}, {}, collector at {}: p99.99", op, protocol, state);
                f.value = spread_of(column(pairs, state, op, "p9999_ns"));
                result.figures.push_back(f);
                std::vector<double> longest = column(pairs, state, op, "max_ns");
                if (longest.empty()) continue;
                f.name = fmt::format("{}, {}, collector at {}: maximum", op, protocol, state);
                f.value = spread_of({*std::max_element(longest.begin(), longest.end())});
                result.figures.push_back(f);
            }
        result.json[protocol] = std::move(measured_json);
    }
    result.partial = interrupted();
    return result;
}

} // namespace obase::tools
