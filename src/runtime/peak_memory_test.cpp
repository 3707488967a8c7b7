// SPDX-License-Identifier: MIT
//
// What moving costs in memory while it lasts. Property: the process never has more resident than 1.05
// of what was loaded and 8 MiB, whatever leaves NEW and in what order the slots lie, for both
// protocols, with objects inside of objects and a thread that uses them meanwhile.
#include "testing/child_process.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "heap/sanitized.hpp"

namespace {

using obase::collect_result;
using obase::testing::require;
using obase::testing::run_in_child;

struct payload {
    std::uint64_t id;
    std::uint64_t filler[55]; // 448 bytes
};
template <class Protocol>
struct node {
    std::uint64_t id;
    obase::guide<payload, Protocol> value;
    std::uint64_t filler[6]; // 64 bytes
};

} // namespace

template <class Protocol>
struct obase::is_relocatable<node<Protocol>> : std::true_type {};

namespace {

std::uint64_t status_bytes(const char* key) {
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    char line[256];
    std::uint64_t kib = 0;
    while (std::fgets(line, sizeof line, file) != nullptr)
        if (std::strncmp(line, key, std::strlen(key)) == 0)
            kib = std::strtoull(line + std::strlen(key), nullptr, 10);
    std::fclose(file);
    return kib * 1024;
}

template <class Protocol>
obase::runtime&
configured_runtime(double window_seconds = 1e6,
                   std::initializer_list<std::pair<const char*, const char*>> others = {}) {
    obase::options settings = obase::options::from_environment();
    settings.window_seconds = window_seconds;
    settings.mode = obase::run_mode::move;
    // It takes a bit for each granule, which the bound does not count.
    require(settings.set("check_frees", "off").empty(), "an option");
    for (const auto& [name, value] : others) require(settings.set(name, value).empty(), name);
    auto& runtime = obase::runtime::of<Protocol>();
    require(runtime.configure(settings).empty(), "configure");
    return runtime;
}

template <class Protocol>
struct store {
    std::vector<obase::guide<node<Protocol>, Protocol>> nodes;

    // The slots lie in another order than the objects.
    explicit store(std::size_t count) : nodes(count) {
        std::vector<std::uint32_t> order(count);
        for (std::uint32_t i = 0; i < count; ++i) order[i] = i;
        std::shuffle(order.begin(), order.end(), std::minstd_rand(1));
        for (const std::uint32_t i : order) {
            const obase::basic_scope<Protocol> s;
            auto made = obase::make_managed<node<Protocol>, Protocol>();
            made->id = i;
            made->value = obase::make_managed<payload, Protocol>();
            made->value->id = i;
            nodes[i] = std::move(made);
        }
    }
    void use(std::size_t i) const {
        const obase::basic_scope<Protocol> s;
        require(nodes[i]->id == i && nodes[i]->value->id == i, "an object is what it was");
    }
};

constexpr std::size_t objects = 120'000; // 61 MB

void within_bound(std::uint64_t loaded) {
    const std::uint64_t peak = status_bytes("VmHWM:");
    std::fprintf(stderr, "loaded %.1f MB, peak %.1f MB\n", static_cast<double>(loaded) * 1e-6,
                 static_cast<double>(peak) * 1e-6);
    require(peak <= loaded + loaded / 20 + (8 << 20), "peak <= 1.05 x loaded + 8 MiB");
}

template <class Protocol>
std::uint64_t live_in(unsigned cls) {
    return obase::runtime::of<Protocol>().statistics().heaps[cls].live_objects;
}

// A tenth is used in every window, the rest goes to COLD.
template <class Protocol>
int sort_a_load() {
    auto& runtime = configured_runtime<Protocol>();
    const store<Protocol> data(objects);
    const std::uint64_t loaded = status_bytes("VmRSS:");
    std::atomic<bool> done{false};
    std::thread user([&] {
        std::minstd_rand random(2);
        while (!done.load()) {
            for (int i = 0; i < 100; ++i) data.use(random() % (objects / 10) * 10);
            std::this_thread::yield();
        }
    });
    for (int window = 0; window < 8; ++window) {
        for (std::size_t i = 0; i < objects; i += 10) data.use(i);
        require(runtime.collect_now() == collect_result::done, "a window");
        within_bound(loaded);
    }
    done = true;
    user.join();
    std::fprintf(stderr, "NEW %llu, HOT %llu, COLD %llu\n",
                 static_cast<unsigned long long>(live_in<Protocol>(0)),
                 static_cast<unsigned long long>(live_in<Protocol>(1)),
                 static_cast<unsigned long long>(live_in<Protocol>(2)));
    require(live_in<Protocol>(2) > 2 * objects * 85 / 100, "most is in COLD");
    require(runtime.statistics().peak_resident_bytes >= loaded, "the statistic");
    for (std::size_t i = 0; i < objects; ++i) data.use(i);
    return 0;
}

// Everything at once.
template <class Protocol>
int promote_a_load() {
    auto& runtime = configured_runtime<Protocol>();
    const store<Protocol> data(objects);
    const std::uint64_t loaded = status_bytes("VmRSS:");
    for (int window = 0; window < 2; ++window) {
        for (std::size_t i = 0; i < objects; ++i) data.use(i);
        require(runtime.collect_now() == collect_result::done, "a window");
        within_bound(loaded);
    }
    require(live_in<Protocol>(1) > 2 * objects * 95 / 100, "all is in HOT");
    for (std::size_t i = 0; i < objects; ++i) data.use(i);
    return 0;
}

// A load with a tail: in every window some of COLD is used, and some of HOT is not. Each leaves a hole.
template <class Protocol>
int move_a_tail() {
    auto& runtime = configured_runtime<Protocol>(
        1e6, {{"cold_threshold", "1"}, {"promotion_target", "1"}, {"time_scale", "1000"}});
    constexpr std::size_t many = 3 * objects; // the bound's 8 MiB are few beside it
    const store<Protocol> data(many);
    const std::uint64_t loaded = status_bytes("VmRSS:");
    std::minstd_rand random(3);
    for (int window = 0; window < 12; ++window) {
        for (std::size_t i = 0; i < many; ++i)
            if (random() % 32 >= i % 8) data.use(i);
        require(runtime.collect_now() == collect_result::done, "a window");
    }
    within_bound(loaded);
    const obase::statistics now = runtime.statistics();
    std::fprintf(stderr, "moved %llu, compacted %llu, postponed %llu\n",
                 static_cast<unsigned long long>(now.moved_objects),
                 static_cast<unsigned long long>(now.compacted),
                 static_cast<unsigned long long>(now.postponed_moves));
    require(now.moved_objects > 2 * many + many / 8, "much moves");
    for (std::size_t i = 0; i < many; ++i) data.use(i);
    return 0;
}

// A scope that does not end: nothing moves, and the memory of NEW goes on being used.
template <class Protocol>
int a_scope_outlasts_the_window() {
    auto& runtime = configured_runtime<Protocol>(0.1);
    runtime.set_mode(obase::run_mode::off);
    std::uint64_t loaded = 0;
    {
        store<Protocol> data(objects);
        loaded = status_bytes("VmRSS:");
        std::atomic<int> state{0};
        std::thread stuck([&] {
            const obase::basic_scope<Protocol> s;
            state = 1;
            while (state.load() != 2) std::this_thread::yield();
        });
        while (state.load() != 1) std::this_thread::yield();
        runtime.set_mode(obase::run_mode::move);
        for (int window = 0; window < 3; ++window) {
            const auto waits = runtime.statistics().abandoned_waits;
            for (std::size_t i = 0; i < objects; ++i) data.use(i);
            // A window that the collector began meanwhile may have found all that was touched.
            (void)runtime.collect_now();
            require(runtime.statistics().abandoned_waits > waits, "given up");
        }
        within_bound(loaded);
        state = 2;
        stuck.join();
        runtime.set_mode(obase::run_mode::off);
        for (std::size_t i = 0; i < objects; ++i) data.use(i);
    }
    const store<Protocol> again(objects); // in the same places
    within_bound(loaded);
    return 0;
}

template <class Body>
void passes(Body&& body) {
    if (obase::heap::sanitized || obase::heap::thread_sanitized)
        GTEST_SKIP() << "the shadow is resident too";
    const auto child = run_in_child(body);
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST(peak_memory, of_a_load_that_is_sorted_arming) { passes(sort_a_load<obase::arming>); }
TEST(peak_memory, of_a_load_that_is_sorted_atc) { passes(sort_a_load<obase::atc>); }
TEST(peak_memory, of_a_load_that_is_promoted_arming) { passes(promote_a_load<obase::arming>); }
TEST(peak_memory, of_a_load_that_is_promoted_atc) { passes(promote_a_load<obase::atc>); }
TEST(peak_memory, of_a_load_with_a_tail_arming) { passes(move_a_tail<obase::arming>); }
TEST(peak_memory, of_a_load_with_a_tail_atc) { passes(move_a_tail<obase::atc>); }
TEST(peak_memory, while_a_scope_outlasts_the_window_arming) {
    passes(a_scope_outlasts_the_window<obase::arming>);
}
TEST(peak_memory, while_a_scope_outlasts_the_window_atc) {
    passes(a_scope_outlasts_the_window<obase::atc>);
}

} // namespace
