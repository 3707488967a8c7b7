// SPDX-License-Identifier: MIT
//
// The TAG's set against std::set, and its promises about groups and memory.
#include "mobility/tag.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

namespace obase::mobility {
namespace {

struct counted_memory {
    static inline unsigned allocations = 0;
    static inline unsigned live = 0;
    static inline unsigned allowed = ~0u;
    static void reset(unsigned limit = ~0u) {
        allocations = live = 0;
        allowed = limit;
    }
    static void* allocate(std::size_t bytes) noexcept {
        if (allocations == allowed) return nullptr;
        ++allocations;
        ++live;
        return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    }
    static void release(void* p, std::size_t) noexcept {
        --live;
        std::free(p);
    }
};
using set = base_delta_ptr_set<counted_memory>;
using result = set::insert_result;

std::set<std::uintptr_t> contents(const set& s) {
    std::set<std::uintptr_t> all;
    std::size_t visited = 0;
    s.for_each([&](std::uintptr_t a) {
        all.insert(a);
        ++visited;
    });
    EXPECT_EQ(visited, s.size());
    return all;
}

// Addresses as they occur: clusters, some of them far apart, and both ends of the address space.
rc::Gen<std::uintptr_t> address() {
    return rc::gen::map(
        rc::gen::pair(rc::gen::element<std::uintptr_t>(
                          0x0, 0x1000, 0x5555'0000'0000, 0x7f00'0000'0000, 0x7f07'ffff'ff00,
                          0x7f08'0000'0000, 0x7fff'ffff'f000, 0x10'0000'0000),
                      rc::gen::inRange<std::uintptr_t>(0, 200)),
        [](const auto& p) { return p.first + 8 * p.second; });
}

RC_GTEST_PROP(tag, is_a_set, ()) {
    counted_memory::reset();
    const auto ops = *rc::gen::container<std::vector<std::pair<unsigned, std::uintptr_t>>>(
        rc::gen::pair(rc::gen::inRange(0u, 10u), address()));
    set tested;
    std::set<std::uintptr_t> model;
    for (const auto& [op, a] : ops) {
        if (op < 7) {
            const auto r = tested.insert(a);
            RC_ASSERT(r == (model.insert(a).second ? result::inserted : result::present));
        } else if (op < 9) {
            RC_ASSERT(tested.remove(a) == (model.erase(a) == 1));
        } else {
            RC_ASSERT(tested.contains(a) == model.contains(a));
        }
        RC_ASSERT(tested.is_valid());
    }
    RC_ASSERT(contents(tested) == model);
    tested.clear();
    RC_ASSERT(tested.empty());
    RC_ASSERT(contents(tested).empty());
}

RC_GTEST_PROP(tag, is_a_set_anywhere, (std::vector<std::uint64_t> raw)) {
    counted_memory::reset();
    set tested;
    std::set<std::uintptr_t> model;
    for (const std::uint64_t r : raw) {
        const std::uintptr_t a = (r * 0x9e3779b97f4a7c15u >> 17) & ~std::uintptr_t{7};
        const auto got = tested.insert(a);
        RC_ASSERT(got == (model.insert(a).second ? result::inserted : result::present));
        RC_ASSERT(tested.insert(a) == result::present);
        RC_ASSERT(tested.is_valid());
    }
    RC_ASSERT(contents(tested) == model);
}

// 64 neighbouring slots, in any of three orders, need no memory beyond the set itself.
TEST(tag, small_sets_allocate_nothing) {
    counted_memory::reset();
    for (const int order : {0, 1}) {
        set s;
        for (std::uintptr_t i = 0; i < 30; ++i)
            ASSERT_EQ(s.insert(0x7f00'0000'0000 + 24 * (order == 0 ? i : 29 - i)),
                      result::inserted);
        EXPECT_EQ(s.size(), 30u);
        EXPECT_LE(s.groups(), 4u);
    }
    EXPECT_EQ(counted_memory::allocations, 0u);
}

TEST(tag, ascending_slots_fill_groups) {
    counted_memory::reset();
    set s;
    for (std::uintptr_t i = 0; i < 1600; ++i)
        ASSERT_EQ(s.insert(0x1000'0000 + 8 * i), result::inserted);
    EXPECT_EQ(s.groups(), 100u);
    EXPECT_TRUE(s.is_valid());
}

TEST(tag, grows_to_long_scans_and_gives_the_memory_back) {
    counted_memory::reset();
    {
        auto s = std::make_unique<set>();
        std::uint64_t x = 1;
        std::set<std::uintptr_t> model;
        for (int i = 0; i < 30'000; ++i) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            const std::uintptr_t a = 0x7f00'0000'0000 + (x >> 40) * 8;
            ASSERT_EQ(s->insert(a) == result::inserted, model.insert(a).second);
        }
        EXPECT_TRUE(s->is_valid());
        EXPECT_EQ(contents(*s), model);
        EXPECT_EQ(counted_memory::live, 1u);
    }
    EXPECT_EQ(counted_memory::live, 0u);
}

// Without memory the set says so, stays what it was, and takes what still fits.
TEST(tag, says_when_there_is_no_memory) {
    counted_memory::reset(0);
    set s;
    unsigned refused = 0;
    std::set<std::uintptr_t> model;
    for (std::uintptr_t i = 0; i < 100; ++i) {
        const std::uintptr_t a = 0x7f00'0000'0000 + 8 * i;
        if (s.insert(a) == result::no_room)
            ++refused;
        else
            model.insert(a);
        ASSERT_TRUE(s.is_valid());
    }
    EXPECT_EQ(refused, 100 - 64u);
    EXPECT_EQ(contents(s), model);
    s.clear();
    EXPECT_EQ(s.insert(8), result::inserted);
}

// A set that is full takes no new slot, still knows those it has, and takes another one where a
// group has room.
TEST(tag, is_bounded) {
    counted_memory::reset();
    auto s = std::make_unique<set>();
    constexpr std::uintptr_t first = 0x7f00'0000'0000;
    constexpr std::uintptr_t full = std::uintptr_t{set::max_groups} * set::group_slots;
    for (std::uintptr_t i = 0; i < full; ++i) ASSERT_EQ(s->insert(first + 8 * i), result::inserted);
    EXPECT_EQ(s->groups(), set::max_groups);
    EXPECT_EQ(s->insert(first + 8 * full), result::no_room);
    EXPECT_EQ(s->insert(first - 8), result::no_room);
    EXPECT_EQ(s->insert(first + 8 * (full / 2)), result::present);
    EXPECT_EQ(s->size(), full);
    EXPECT_TRUE(s->is_valid());
    ASSERT_TRUE(s->remove(first));
    EXPECT_EQ(s->insert(first), result::inserted);
    s->clear();
    EXPECT_EQ(s->insert(first + 8 * full), result::inserted);
}

TEST(tag, zeroed_memory_is_an_empty_set) {
    alignas(set) unsigned char memory[sizeof(set)] = {};
    const set& s = *reinterpret_cast<set*>(memory);
    EXPECT_TRUE(s.empty());
    EXPECT_FALSE(s.contains(0x1000));
}

} // namespace
} // namespace obase::mobility
