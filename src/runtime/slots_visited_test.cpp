// SPDX-License-Identifier: MIT
//
// What the collector looks at: every slot that matters is visited again, wherever it lies. Each
// test is a layout in which slots were once forgotten.
#include "testing/child_process.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using obase::collect_result;
using obase::testing::require;
using obase::testing::run_in_child;

struct leaf_object {
    std::uint64_t id;
    std::uint64_t filler[7];
};
struct parent_object {
    obase::guide<leaf_object> child;
    std::uint64_t filler[7];
};
struct table {
    obase::guide<leaf_object> entries[4096]; // 32 KiB: LARGE
};
struct long_parent {
    std::uint64_t filler[20'000];
    obase::guide<leaf_object> child; // in another 64 KiB than where the parent begins
};

} // namespace

template <>
struct obase::is_relocatable<parent_object> : std::true_type {};
template <>
struct obase::is_relocatable<table> : std::true_type {};
template <>
struct obase::is_relocatable<long_parent> : std::true_type {};

namespace {

obase::runtime& configured_runtime(std::uint64_t heap_reserve = 0) {
    obase::options settings = obase::options::from_environment();
    settings.window_seconds = 1e6;
    settings.heap_reserve = heap_reserve;
    auto& runtime = obase::runtime::get();
    require(runtime.configure(settings).empty(), "configure");
    return runtime;
}

void collect(int windows) {
    for (; windows > 0; --windows)
        require(obase::runtime::get().collect_now() == collect_result::done, "a window");
}

std::uint64_t objects_in(unsigned cls) {
    return obase::runtime::get().statistics().heaps[cls].live_objects;
}

// A parent in COLD that is touched while it is pinned stays there; its child does not. Later the
// parent is not touched any more, so its run is not (R16), and the child must follow all the same.
TEST(collector, a_child_returns_to_cold_after_its_parent_could_not_leave_it) {
    const auto child = run_in_child([] {
        configured_runtime();
        std::vector<obase::guide<parent_object>> parents;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            auto made = obase::make_managed<parent_object>();
            made->child = obase::make_managed<leaf_object>(leaf_object{i, {}});
            parents.emplace_back(std::move(made));
        }
        collect(10);
        require(objects_in(2) == 2000, "all in COLD");
        {
            std::vector<obase::pin<parent_object>> pins;
            {
                obase::scope s;
                for (std::uint64_t i = 0; i < 1000; ++i) {
                    require(parents[i]->child->id == i, "a child");
                    pins.emplace_back(parents[i]);
                }
            }
            collect(1);
            require(objects_in(1) == 1000, "the children in HOT");
            require(objects_in(2) == 1000, "the parents in COLD");
        }
        collect(10);
        require(objects_in(2) == 2000, "all in COLD again");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Parents that lie in several runs of COLD, and reach from one leaf of SODA into the next.
TEST(collector, sees_guides_far_into_parents_in_cold) {
    const auto child = run_in_child([] {
        configured_runtime();
        std::vector<obase::guide<long_parent>> parents;
        constexpr std::uint64_t count = 300; // 46 MiB
        for (std::uint64_t i = 0; i < count; ++i) {
            auto made = obase::make_managed<long_parent>();
            made->child = obase::make_managed<leaf_object>(leaf_object{i, {}});
            parents.emplace_back(std::move(made));
        }
        collect(12);
        require(objects_in(2) == 2 * count, "all in COLD");
        for (std::uint64_t i = 0; i < count; ++i) {
            obase::scope s;
            require(parents[i]->child->id == i, "a child");
        }
        collect(1);
        require(objects_in(1) == 2 * count, "all in HOT");
        for (std::uint64_t i = 0; i < count; ++i) {
            obase::scope s;
            require(parents[i]->child->id == i, "a child");
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// They go to COLD before their children, which are pinned. No thread touches them there, and the children must follow
// when they can.
TEST(collector, children_follow_long_parents_to_cold_when_they_can) {
    const auto child = run_in_child([] {
        configured_runtime();
        std::vector<obase::guide<long_parent>> parents;
        constexpr std::uint64_t count = 20;
        std::vector<obase::pin<leaf_object>> pins;
        for (std::uint64_t i = 0; i < count; ++i) {
            auto made = obase::make_managed<long_parent>();
            made->child = obase::make_managed<leaf_object>(leaf_object{i, {}});
            parents.emplace_back(std::move(made));
            obase::scope s;
            pins.emplace_back(parents.back()->child);
        }
        collect(12);
        require(objects_in(2) == count, "the parents in COLD");
        pins.clear();
        collect(12);
        require(objects_in(2) == 2 * count, "all in COLD");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// With classes of 8 MiB a leaf of SODA that begins in COLD ends in LARGE.
TEST(collector, sees_guides_in_large_objects_when_classes_are_small) {
    for (const std::uint64_t mib : {1u, 2u, 4u, 8u, 16u, 32u}) {
        const auto child = run_in_child([mib] {
            configured_runtime(mib << 20);
            obase::owner<table> entries = obase::make_managed<table>();
            for (std::uint64_t i = 0; i < 4096; ++i)
                entries->entries[i] = obase::make_managed<leaf_object>(leaf_object{i, {}});
            collect(10);
            require(objects_in(2) == 4096, "all in COLD");
            {
                obase::scope s;
                for (std::uint64_t i = 0; i < 4096; ++i)
                    require(entries->entries[i]->id == i, "an entry");
            }
            collect(1);
            require(objects_in(1) == 4096, "all in HOT");
            return 0;
        });
        EXPECT_EQ(child.status, 0) << "classes of " << mib << " MiB: " << child.err;
    }
}

} // namespace
