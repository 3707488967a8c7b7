// SPDX-License-Identifier: MIT
//
// Objects with neighbours, groups and expectations, from end to end: where they lie, that they move, are pinned and
// hold guides like others, and that what cannot be placed is an ordinary object.
#include "testing/child_process.hpp"
#include "testing/quiet_runtime.hpp"

#include <obase/obase.h>
#include <obase/obase.hpp>
#include <obase/place/group.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <list>
#include <memory_resource>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

using obase::allocation_options;
using obase::expectation;

struct leaf {
    std::uint64_t id;
};
struct node {
    std::uint64_t id;
    std::uint64_t filler[4];
    obase::guide<leaf> child;
};
} // namespace
template <>
struct obase::is_relocatable<node> : std::true_type {};
namespace {
using node_guide = obase::guide<node>;

std::uintptr_t page_of(const void* object) {
    return reinterpret_cast<std::uintptr_t>(object) / 4096;
}

class near_objects : public ::testing::Test {
  public:
    static obase::runtime& runtime() { return obase::testing::quiet_runtime(); }
    static void collect() { ASSERT_EQ(runtime().collect_now(), obase::collect_result::done); }
    static std::uint64_t missed() {
        collect();
        return runtime().statistics().near_missed;
    }
    void SetUp() override { collect(); }
};

// Before all others: the child is to be a fresh process.
TEST(near_objects_checked, a_freed_neighbour_is_reported) {
    const auto child = obase::testing::run_in_child([] {
        setenv("OBASE_CHECK_FREES", "1", 1);
        obase_allocation_options how = {};
        how.alignment = 8;
        void* const first = obase_alloc(64, &how);
        void* const second = obase_alloc(64, &how);
        obase_free(first);
        how.near = second;
        obase_free(obase_alloc(64, &how));
        how.near = first;
        obase_free(obase_alloc(64, &how));
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    ASSERT_EQ(child.messages().size(), 1u) << child.err;
    EXPECT_NE(child.messages()[0].find("was it freed"), std::string::npos);
}

TEST_F(near_objects, lie_on_their_neighbour_s_page) {
    std::vector<void*> first, all;
    for (int group = 0; group < 50; ++group) first.push_back(obase::arming::allocate(40, {}));
    for (void* const of : first) all.push_back(obase::arming::allocate(48, {.near = of}));
    for (int round = 0; round < 10; ++round)
        for (std::size_t group = 0; group < first.size(); ++group) {
            // An object outside of NEAR stands for the group that it began.
            const void* const of = round % 2 == 0 ? first[group] : all[group];
            void* const made = obase::arming::allocate(100, {.near = of});
            EXPECT_EQ(page_of(made), page_of(all[group]));
            EXPECT_EQ(runtime().heap_of(made), 0);
            std::memset(made, 1, 100);
            all.push_back(made);
        }
    for (void* const object : all) obase::arming::deallocate(object);
    for (void* const object : first) obase::arming::deallocate(object);
    EXPECT_EQ(runtime().heap_of(all[0]), 0);
}

TEST_F(near_objects, what_has_no_neighbours_is_an_ordinary_object_and_counted) {
    const std::uint64_t before = missed();
    char* const object =
        static_cast<char*>(obase::arming::allocate(64, {.expect = expectation::hot}));
    char* const ordinary = static_cast<char*>(obase::arming::allocate(200, {}));
    void* const large = obase::arming::allocate(100'000, {});
    void* const freed = obase::arming::allocate(64, {.near = object});
    obase::arming::deallocate(freed);
    std::vector<char> foreign(100);
    const void* const bad[] = {freed, foreign.data(), object + 8, object + 1, ordinary + 16, large};
    for (const void* const near : bad) {
        void* const made = obase::arming::allocate(48, {.near = near});
        ASSERT_NE(made, nullptr);
        std::memset(made, 7, 48);
        obase::arming::deallocate(made);
    }
    void* const too_large = obase::arming::allocate(5'000, {.near = object});
    ASSERT_NE(too_large, nullptr);
    EXPECT_EQ(missed(), before + std::size(bad) + 1);
    // Null is no neighbour, and an expectation that there is not is none.
    allocation_options odd{.near = nullptr};
    odd.expect = static_cast<expectation>(77);
    void* const none = obase::arming::allocate(48, odd);
    ASSERT_NE(none, nullptr);
    EXPECT_EQ(missed(), before + std::size(bad) + 1);
    for (void* const one :
         {static_cast<void*>(object), static_cast<void*>(ordinary), large, too_large, none})
        obase::arming::deallocate(one);
}

// Objects of one bucket with guides in them, allocated in turns, under forced collections: all move, none is lost,
// and a pinned one stays.
TEST_F(near_objects, move_with_the_guides_in_them) {
    constexpr std::size_t buckets = 40, members = 15;
    std::vector<obase::group> names(buckets);
    std::vector<node_guide> all;
    for (std::size_t i = 0; i < buckets * members; ++i) {
        auto made = obase::make_managed_with<node>({.in = &names[i % buckets]});
        made->id = i;
        auto child = obase::make_managed_with<leaf>({.near = made.get()});
        child->id = 2 * i;
        made->child = std::move(child);
        all.emplace_back(std::move(made));
    }
    const auto check = [&](std::size_t step) {
        obase::scope s;
        for (std::size_t i = 0; i < all.size(); i += step) {
            ASSERT_EQ(all[i]->id, i);
            ASSERT_EQ(all[i]->child->id, 2 * i);
        }
    };
    collect();
    const auto before = runtime().statistics();
    check(1);
    collect();
    obase::pin<node> pinned;
    const void* stays = nullptr;
    {
        obase::scope s;
        pinned = obase::pin<node>(all[2].get());
        stays = all[2].get();
    }
    for (int window = 0; window < 6; ++window) {
        check(2);
        collect();
    }
    {
        obase::scope s;
        EXPECT_EQ(all[2].get(), stays);
    }
    pinned = {};
    check(1);
    const auto now = runtime().statistics();
    EXPECT_GE(now.moved("new", "hot") - before.moved("new", "hot"), buckets * members);
    std::set<int> heaps;
    for (const auto& one : all) heaps.insert(runtime().heap_of(one.peek()));
    EXPECT_GT(heaps.size(), 1u);
    all.clear();
}

// The first window goes by what is expected, the others by what is seen.
TEST_F(near_objects, expectations_place_objects_until_they_are_seen) {
    std::vector<obase::guide<leaf>> hot, cold, once;
    const auto make = [](expectation what) {
        return obase::make_managed_with<leaf>({.extra_bytes = 56, .expect = what}, leaf{7});
    };
    for (int i = 0; i < 200; ++i) {
        hot.emplace_back(make(expectation::hot));
        cold.emplace_back(make(expectation::cold));
        once.emplace_back(make(expectation::once));
    }
    const auto all_in = [&](const std::vector<obase::guide<leaf>>& objects, int heap) {
        std::size_t there = 0;
        for (const auto& one : objects) there += runtime().heap_of(one.peek()) == heap;
        return there;
    };
    for (const bool seen : {false, true}) {
        EXPECT_EQ(all_in(hot, 1), hot.size()) << "born there, and stays: " << seen;
        EXPECT_EQ(all_in(cold, 2), cold.size());
        EXPECT_EQ(all_in(once, 0), once.size());
        collect();
    }
    {
        obase::scope s;
        for (const auto& one : cold) EXPECT_EQ(one->id, 7u);
        for (const auto& one : once) EXPECT_EQ(one->id, 7u);
    }
    collect();
    EXPECT_EQ(all_in(cold, 1), cold.size()) << "seen: in use";
    EXPECT_EQ(all_in(once, 0), once.size()) << "never HOT";
    for (int window = 0; window < 40 && all_in(hot, 2) != hot.size(); ++window) collect();
    EXPECT_EQ(all_in(hot, 2), hot.size()) << "seen: not in use";
}

TEST_F(near_objects, containers_lie_in_groups) {
    obase::place::group first, second;
    std::pmr::list<std::uint64_t> a(&first);
    std::list<std::uint64_t, obase::place::near_allocator<std::uint64_t>> b{
        obase::place::near_allocator<std::uint64_t>(second)};
    for (std::uint64_t i = 0; i < 40; ++i) {
        a.push_back(i);
        b.push_back(i);
    }
    std::set<std::uintptr_t> pages_of_a, pages_of_b;
    for (const auto& one : a) pages_of_a.insert(page_of(&one));
    for (const auto& one : b) pages_of_b.insert(page_of(&one));
    EXPECT_EQ(pages_of_a.size(), 1u);
    EXPECT_EQ(pages_of_b.size(), 1u);
    EXPECT_FALSE(first.is_equal(second));
    EXPECT_FALSE(first.is_equal(*std::pmr::new_delete_resource()));
    // A resource beside an object.
    void* const object = obase::arming::allocate(64, {.expect = expectation::hot});
    {
        obase::place::group beside(object);
        std::pmr::vector<std::uint64_t> c(4, 0, &beside);
        EXPECT_EQ(page_of(c.data()), page_of(object));
    }
    obase::arming::deallocate(object);
}

TEST_F(near_objects, of_c_are_the_same) {
    obase_group bucket = {0};
    obase_allocation_options how = {};
    how.in = &bucket;
    how.expect = OBASE_EXPECT_NOTHING;
    void* const first = obase_alloc(50, &how);
    how.in = nullptr;
    how.near = first;
    void* const second = obase_alloc(70, &how);
    EXPECT_EQ(page_of(first), page_of(second));
    EXPECT_NE(bucket.name, 0u);
    EXPECT_GE(obase_usable_size(second), 70u);
    how.expect = 1000;
    how.near = nullptr;
    void* const third = obase_alloc(70, &how);
    ASSERT_NE(third, nullptr);
    for (void* const object : {first, second, third}) obase_free(object);
#ifndef OBASE_DEBUG_CHECKS // which ends the process
    obase_free(second);    // has no effect, and is counted
    collect();
    EXPECT_GE(runtime().statistics().invalid_frees, 1u);
#endif
}

// Several threads grow one group of guided objects while they move.
TEST_F(near_objects, threads_grow_a_group_that_moves) {
    obase::group bucket;
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < 3; ++t)
        threads.emplace_back([&, t] {
            std::vector<obase::guide<leaf>> mine;
            for (std::uint64_t i = 0; i < 4'000; ++i) {
                mine.emplace_back(obase::make_managed_with<leaf>({.in = &bucket}, leaf{i + t}));
                obase::scope s;
                const std::uint64_t k = i * 7 / 9;
                ASSERT_EQ(mine[k]->id, k + t);
                if (i % 5 == 0)
                    mine[k] = obase::make_managed_with<leaf>({.in = &bucket}, leaf{k + t});
            }
        });
    for (int i = 0; i < 15; ++i) collect();
    threads.clear();
    collect();
}

} // namespace
