// SPDX-License-Identifier: MIT
//
// How many executions and steps per second an exploration makes: small tests with few steps, and
// one long execution, by strategy. Prints one line each, in seconds of CPU time.
#include "testing/deterministic.hpp"
#include "testing/tracked_heap.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

namespace obase {
namespace {

using platform = testing::deterministic_platform;

void measure(const char* what, const testing::exploration& e, const std::function<void()>& body) {
    const std::clock_t begin = std::clock(); // this process's own time, on a machine with others
    const testing::result r = testing::explore(e, body);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!r.ok) {
        std::puts(r.report.c_str());
        std::exit(1);
    }
    std::printf("%-24s %9llu executions, %6.0f steps each, %9.0f executions/s, %5.1f ns/step\n",
                what, static_cast<unsigned long long>(r.executions),
                static_cast<double>(r.steps) / static_cast<double>(r.executions),
                static_cast<double>(r.executions) / seconds,
                1e9 * seconds / static_cast<double>(r.steps));
}

void two_increments() {
    platform::atomic<int> counter;
    for (int i = 0; i < 2; ++i) {
        testing::spawn([&] { counter.fetch_add_relaxed(1); });
    }
    testing::run();
}

// Three threads, each taking a lock, writing tracked memory and giving it back.
void lock_and_heap() {
    testing::tracked_heap heap;
    platform::atomic<int> lock;
    for (int t = 0; t < 3; ++t) {
        testing::spawn([&] {
            for (int i = 0; i < 4; ++i) {
                auto* n = heap.create<platform::atomic<int>>("node");
                while (lock.exchange_acq_rel(1) != 0) {
                    platform::pause();
                }
                n->store_relaxed(1);
                lock.store_release(0);
                heap.destroy(n);
            }
        });
    }
    testing::run();
}

void long_execution() {
    platform::atomic<int> words[4];
    for (unsigned t = 0; t < 4; ++t) {
        testing::spawn([&, t] {
            for (unsigned i = 0; i < 2000; ++i) {
                words[(t + i) % 4].store_relaxed(words[t].load_relaxed() + 1);
            }
        });
    }
    testing::run();
}

} // namespace
} // namespace obase

int main(int argc, char** argv) {
    using namespace obase;
    const bool smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0;
    const std::uint64_t n = smoke ? 1000 : 200'000;
    using s = obase::testing::strategy;
    for (const auto& [strategy, text] : {std::pair{s::random, "random"}, std::pair{s::pct, "pct"},
                                         std::pair{s::bounded_exhaustive, "exhaustive"}}) {
        std::printf("%s:\n", text);
        measure("  two increments", {.seeds = n, .strategy = strategy}, two_increments);
        measure("  lock and heap", {.seeds = n / 4, .strategy = strategy}, lock_and_heap);
        measure("  long", {.seeds = n / 1000, .strategy = strategy}, long_execution);
    }
}
