// SPDX-License-Identifier: MIT
//
// Objects that are born cold, from end to end: they lie in COLD from the beginning, leave memory before any window, come
// home when they are used, and what they refer to is moved like anything else.
#include "testing/child_process.hpp"
#include "testing/mappings.hpp"
#include "testing/test_directory.hpp"

#include "heap/sanitized.hpp"
#include "os/process.hpp"

#include <obase/obase.h>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using obase::collect_result;
using obase::expectation;
using obase::run_mode;
using obase::testing::mapping;
using obase::testing::mappings_of;
using obase::testing::require;
using obase::testing::run_in_child;

constexpr std::size_t mib = 1U << 20;
constexpr int hot_heap = 1, cold_heap = 2;
using values = std::vector<obase::guide<obase::bytes>>;

struct parent {
    obase::guide<obase::bytes> child;
};
} // namespace
template <>
struct obase::is_relocatable<parent> : std::true_type {};
namespace {

class births : public ::testing::Test {
  protected:
    void SetUp() override {
        path = obase::testing::make_directory("births");
        on_disk = obase::testing::is_on_disk(path);
    }
    void TearDown() override { obase::testing::remove_empty_directory(path); }

    // In the child.

    template <class Change>
    static void configure(run_mode mode, Change&& change) {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.mode = mode;
        settings.memory = "none"; // whatever limit the control group has
        settings.cold_threshold = 1;
        settings.controller = obase::controller_kind::fixed;
        settings.cold_backing = "file:" + path;
        change(settings);
        require(obase::runtime::get().configure(settings).empty(), "configure");
        require(obase::runtime::get().start().empty(), "start");
        // The collector allows births when it runs.
        while (obase::runtime::get().heap_of(obase::guide(made(100, expectation::cold)).peek()) !=
                   cold_heap &&
               mode >= run_mode::move)
            std::this_thread::yield();
    }
    static void configure(run_mode mode) {
        configure(mode, [](obase::options&) {});
    }
    static obase::owner<obase::bytes> made(std::size_t size, expectation expect) {
        return obase::make_bytes(std::string(size, 'x'), {.expect = expect});
    }
    static std::size_t in_heap(const values& all, int heap) {
        std::size_t there = 0;
        for (const auto& one : all) there += obase::runtime::get().heap_of(one.peek()) == heap;
        return there;
    }
    static bool whole(const values& all) {
        const obase::scope s;
        for (const auto& one : all)
            if (one->view().size() != 1000 || one->view().back() != 'x') return false;
        return true;
    }
    static void collect(int windows = 1) {
        for (; windows > 0; --windows)
            require(obase::runtime::get().collect_now() == collect_result::done, "done");
    }
    static bool in_file(const mapping& m) { return m.path.starts_with(path); }

    static inline std::string path;
    static inline bool on_disk = false;
};

TEST_F(births, of_what_is_cold_are_out_of_memory_before_a_window) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        values all;
        for (int i = 0; i < 64'000; ++i) all.emplace_back(made(1000, expectation::cold));
        require(in_heap(all, cold_heap) == all.size(), "all were born in COLD");
        // But for what is being filled: no window was asked for, and none comes.
        while (mappings_of(in_file).resident > 2 * mib) std::this_thread::yield();
        require(obase::runtime::get().statistics().windows == 0, "and no window was needed");
        require(whole(all), "they come back unharmed");
        if (!obase::heap::sanitized)
            require(mappings_of(in_file).resident > 32 * mib, "to where they are");
        collect(); // arms
        require(whole(all), "used");
        collect(2);
        require(in_heap(all, hot_heap) > all.size() * 9 / 10, "what is used is promoted");
        require(whole(all), "still there");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_TRUE(child.messages().empty()) << child.err;
}

// Property: objects of the C interface are born where those of C++ are, if the caller says that a guide will hold them; they
// come home when they are used. Others, of which only the address is known, could not.
TEST_F(births, of_c_objects_are_the_same) {
    const auto child = run_in_child([] {
        configure(run_mode::move);
        const auto heap_of = [](const void* object) {
            return obase::runtime::get().heap_of(object);
        };
        obase_allocation_options how = {};
        how.alignment = 8;
        for (const int expect : {OBASE_EXPECT_COLD, OBASE_EXPECT_HOT, OBASE_EXPECT_ONCE}) {
            how.expect = expect;
            how.guided = 0;
            void* const unguided = obase_alloc(200, &how);
            require(heap_of(unguided) == 0, "without a guide it is born in memory");
            how.guided = 1;
            void* const guided = obase_alloc(200, &how);
            require(heap_of(guided) == (expect == OBASE_EXPECT_COLD  ? cold_heap
                                        : expect == OBASE_EXPECT_HOT ? hot_heap
                                                                     : 0),
                    "with one, where such objects lie");
            obase_free(unguided);
            obase_free(guided);
        }
        how.expect = OBASE_EXPECT_COLD;
        how.never_cold = 1;
        void* const kept = obase_alloc(200, &how);
        require(heap_of(kept) == 0, "what may not be cold is not");
        how.never_cold = 0;
        how.near = kept;
        void* const beside = obase_alloc(200, &how);
        require(heap_of(beside) == 0, "a neighbour is a promise");
        how.near = nullptr;
        std::vector<obase_guide> all(1'000);
        for (obase_guide& guide : all) {
            obase_guide_init(&guide);
            char* const text = static_cast<char*>(obase_alloc(200, &how));
            require(heap_of(text) == cold_heap, "born in COLD");
            std::memset(text, 'c', 200);
            require(obase_guide_exchange(&guide, text) == nullptr, "the guide was empty");
        }
        const auto whole = [&all] {
            const std::uint64_t outer = obase_scope_enter();
            bool all_there = true;
            for (obase_guide& guide : all) {
                const char* const text = static_cast<const char*>(obase_guide_get(&guide));
                all_there = all_there && text[0] == 'c' && text[199] == 'c';
            }
            obase_scope_exit(outer);
            return all_there;
        };
        collect(); // arms
        require(whole(), "used");
        collect(2);
        std::size_t hot = 0;
        const std::uint64_t outer = obase_scope_enter();
        for (obase_guide& guide : all) hot += heap_of(obase_guide_get(&guide)) == hot_heap;
        obase_scope_exit(outer);
        require(hot > all.size() * 9 / 10, "what is used is promoted");
        require(whole(), "still there");
        for (obase_guide& guide : all) obase_guide_destroy(&guide);
        obase_free(beside);
        obase_free(kept);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_TRUE(child.messages().empty()) << child.err;
}

TEST_F(births, in_mode_off_are_ordinary) {
    const auto child = run_in_child([] {
        configure(run_mode::off);
        values all;
        for (int i = 0; i < 100; ++i) all.emplace_back(made(1000, expectation::cold));
        require(in_heap(all, cold_heap) == 0, "nothing would bring them home");
        obase::runtime::get().set_mode(run_mode::move);
        while (in_heap(all, cold_heap) == 0) all.emplace_back(made(1000, expectation::cold));
        obase::runtime::get().stop();
        for (int i = 0; i < 100; ++i) all.emplace_back(made(1000, expectation::cold));
        const std::size_t there = in_heap(all, cold_heap);
        for (int i = 0; i < 100; ++i) all.emplace_back(made(1000, expectation::cold));
        require(in_heap(all, cold_heap) == there, "nor when the collector has ended");
        require(whole(all), "all are there");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Property: what is used once and dies takes no memory that only a collector would give back.
TEST_F(births, of_what_is_used_once_use_places_again_in_mode_off) {
    const auto child = run_in_child([] {
        configure(run_mode::move);
        obase::runtime::get().set_mode(run_mode::off);
        // Until the collector has heard of it.
        while (obase::runtime::get().heap_of(obase::guide(made(100, expectation::cold)).peek()) ==
               cold_heap)
            std::this_thread::yield();
        const std::uint64_t before = obase::os::resident_bytes();
        for (int i = 0; i < 20'000; ++i) made(1000, expectation::once);
        require(obase::heap::sanitized || obase::os::resident_bytes() < before + 8 * mib,
                "20 MB were made, one object at a time");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// What a cold object refers to is found though nothing touches the object: its slots are visited once.
TEST_F(births, are_visited_though_they_lie_in_a_lazy_tier) {
    const auto child = run_in_child([] {
        configure(run_mode::move);
        std::vector<obase::guide<parent>> parents;
        for (int i = 0; i < 1000; ++i) {
            auto one = obase::make_managed_with<parent>({.expect = expectation::cold});
            one->child = made(1000, expectation::nothing);
            parents.emplace_back(std::move(one));
        }
        collect(6);
        std::size_t cold = 0;
        for (const auto& one : parents) {
            const obase::scope s;
            require(obase::runtime::get().heap_of(one.peek()) == cold_heap, "the parents stayed");
            cold += obase::runtime::get().heap_of(one->child.peek()) == cold_heap;
        }
        require(cold > 900, "their children came");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST_F(births, keep_within_the_limit_on_writes) {
    const auto child = run_in_child([] {
        configure(run_mode::move, [](obase::options& o) {
            o.window_seconds = 1000;
            o.cold_write_limit = 1100; // 16 runs of 64 KiB for the first window
        });
        values all;
        for (int i = 0; i < 10'000; ++i) all.emplace_back(made(1000, expectation::cold));
        const std::size_t there = in_heap(all, cold_heap);
        require(there > 500 && there < 1200, "as many as may be written");
        require(whole(all), "and the others elsewhere");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST_F(births, of_both_sides_of_a_fork_are_their_own) {
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        values all;
        for (int i = 0; i < 4000; ++i) all.emplace_back(made(1000, expectation::cold));
        const pid_t pid = fork();
        if (pid == 0) {
            bool good = whole(all);
            for (int i = 0; i < 100; ++i) all.emplace_back(made(1000, expectation::cold));
            good = good && whole(all);
            _exit(good ? 0 : 1);
        }
        for (int i = 0; i < 4000; ++i) all.emplace_back(made(1000, expectation::cold));
        require(whole(all), "here");
        int status = -1;
        require(waitpid(pid, &status, 0) == pid && status == 0, "and there");
        require(in_heap(all, cold_heap) > 7900, "births go on");
        collect(2);
        require(whole(all), "after windows, too");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// HOT in a file, like COLD; and where that cannot be, a message and memory.
TEST_F(births, and_moves_reach_hot_in_a_file) {
    for (const bool exists : {true, false}) {
        const auto child = run_in_child([exists] {
            configure(run_mode::move, [&](obase::options& o) {
                o.cold_backing = "anon";
                o.hot_backing = "file:" + path + (exists ? "" : "/nothing");
            });
            values all, moved;
            for (int i = 0; i < 4000; ++i) all.emplace_back(made(1000, expectation::hot));
            for (int i = 0; i < 4000; ++i) moved.emplace_back(made(1000, expectation::nothing));
            require(in_heap(all, hot_heap) == all.size(), "born in HOT");
            collect();
            require(whole(moved), "used");
            collect();
            require(in_heap(moved, hot_heap) > 3000, "promoted to HOT");
            require((mappings_of(in_file).size >= 6 * mib) == exists, "which is the file");
            const pid_t pid = fork();
            if (pid == 0) _exit(whole(all) && whole(moved) ? 0 : 1);
            int status = -1;
            require(waitpid(pid, &status, 0) == pid && status == 0, "a fork has them");
            require(whole(all) && whole(moved), "as the parent has");
            return 0;
        });
        EXPECT_EQ(child.status, 0) << child.err;
        EXPECT_EQ(child.err.find("HOT stays in anonymous memory: hot directory") !=
                      std::string::npos,
                  !exists)
            << child.err;
    }
}

} // namespace
