// SPDX-License-Identifier: MIT
//
// Pin entries: claimed, found, released, in more chunks than one. Pins against the mover and
// against reclamation are in arming_obligations_test.cpp.
#include "mobility/world_test.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

namespace obase::mobility {
namespace {

using native = os::native_platform;

struct pins : ::testing::Test {
    pins() {
        registry.add(a, 1);
        registry.add(b, 2);
    }
    auto* claim(thread_record<native>& r, std::uint64_t address) {
        return claim_pin<native>(r, address, [this] { return &chunks.emplace_back(); });
    }
    std::vector<std::uint64_t> collected() {
        std::vector<std::uint64_t> found{999}; // what was in the list before does not matter
        collect_pins(registry, found);
        return found;
    }

    std::deque<pin_chunk<native>> chunks;
    scope_registry<native> registry;
    thread_record<native> a, b;
};

TEST_F(pins, are_collected_in_order_from_all_threads) {
    EXPECT_TRUE(collected().empty());
    claim(a, 300);
    claim(b, 100);
    claim(a, 200);
    EXPECT_EQ(collected(), (std::vector<std::uint64_t>{100, 200, 300}));
}

TEST_F(pins, of_one_object_count_separately) {
    auto* first = claim(a, 100);
    auto* second = claim(a, 100);
    ASSERT_NE(first, second);
    release_pin(*first);
    EXPECT_TRUE(is_pinned(collected(), 100));
    release_pin(*second);
    EXPECT_FALSE(is_pinned(collected(), 100));
}

TEST_F(pins, take_more_chunks_when_one_is_full) {
    constexpr unsigned many = 3 * pin_chunk<native>::entries + 1;
    std::vector<word::native_atomic<std::uint64_t>*> entries;
    for (unsigned i = 1; i <= many; ++i) entries.push_back(claim(a, i));
    EXPECT_EQ(std::set(entries.begin(), entries.end()).size(), many);
    EXPECT_EQ(chunks.size(), 3u);
    EXPECT_EQ(collected().size(), many);
    release_pin(*entries[40]);
    EXPECT_EQ(claim(a, 5000), entries[40]) << "free entries are used first";
    EXPECT_EQ(chunks.size(), 3u);
    EXPECT_TRUE(is_pinned(collected(), 5000));
    EXPECT_FALSE(is_pinned(collected(), 41));
}

TEST_F(pins, without_memory_there_is_none) {
    const auto no_memory = [] { return static_cast<pin_chunk<native>*>(nullptr); };
    for (unsigned i = 1; i <= pin_chunk<native>::entries; ++i)
        ASSERT_NE(claim_pin<native>(a, i, no_memory), nullptr);
    EXPECT_EQ(claim_pin<native>(a, 1000, no_memory), nullptr);
    EXPECT_FALSE(is_pinned(collected(), 1000));
    EXPECT_NE(claim_pin<native>(b, 1000, no_memory), nullptr);
}

TEST_F(pins, outlive_their_thread) {
    auto* entry = claim(a, 100);
    registry.release(a);
    EXPECT_TRUE(is_pinned(collected(), 100));
    ASSERT_EQ(registry.find_unused(3), &a);
    EXPECT_NE(claim(a, 200), entry) << "the next thread of the record leaves it alone";
    release_pin(*entry);
    EXPECT_FALSE(is_pinned(collected(), 100));
}

TEST_F(pins, nothing_is_pinned_in_an_empty_list) {
    EXPECT_FALSE(is_pinned({}, 0));
    EXPECT_FALSE(is_pinned({}, 100));
    EXPECT_FALSE(is_pinned({100, 300}, 200));
    EXPECT_TRUE(is_pinned({100, 300}, 300));
}

// A pin handed to another thread and released there: the next claim of the entry, by its owner, is
// not wiped out by that release, and a collector that looks meanwhile sees the one or the other.
template <class P>
void released_by_another_thread() {
    using threads = testing::threads_for<P>;
    using entry = typename P::template atomic<std::uint64_t>;
    scope_registry<P> registry;
    thread_record<P> r;
    registry.add(r, 1);
    typename P::template atomic<entry*> handed(nullptr);
    threads::spawn("owner", [&] {
        for (std::uint64_t i = 1; i <= 3; ++i) {
            entry* e = claim_pin<P>(r, i, [] { return static_cast<pin_chunk<P>*>(nullptr); });
            threads::require(e != nullptr, "room");
            while (handed.load_acquire() != nullptr) P::pause();
            threads::require(e->load_relaxed() == i, "an entry is its claimer's until released");
            handed.store_release(e);
        }
    });
    threads::spawn("receiver", [&] {
        for (std::uint64_t i = 1; i <= 3; ++i) {
            entry* e = nullptr;
            while ((e = handed.load_acquire()) == nullptr) P::pause();
            threads::require(e->load_relaxed() == i, "the pin that was handed over");
            handed.store_release(nullptr);
            release_pin(*e);
        }
    });
    threads::run();
    std::vector<std::uint64_t> left;
    collect_pins(registry, left);
    threads::require(left.empty(), "all were released");
}
TEST(pins_between_threads, are_released_by_another_scheduled) {
    explore_schedules("pins", 1000, released_by_another_thread<testing::deterministic_platform>);
}
TEST(pins_between_threads, are_released_by_another_on_threads) {
    explore_threads("pins", released_by_another_thread<native>);
}

} // namespace
} // namespace obase::mobility
