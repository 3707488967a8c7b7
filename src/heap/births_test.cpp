// SPDX-License-Identifier: MIT
//
// Objects that are born where they are expected to live: in a dense class, over its file or in memory, or in runs of those
// that are used once. And where that cannot be had, an object like any other.
#include "heap/space.hpp"
#include "os/memory.hpp"
#include "testing/failing_calls.hpp"
#include "testing/test_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace obase::heap {
namespace {

constexpr std::size_t mib = 1U << 20;
constexpr unsigned hot_class = 1, cold_class = 2;

class births : public ::testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        directory_ = testing::make_directory("births");
        std::string why;
        made = space::create(
            {.range_bytes = 64 * mib, .cold_directory = GetParam() ? directory_ : std::string()},
            &why);
        ASSERT_NE(made, nullptr) << why;
        made->give_births(expectation::hot, hot_class);
        made->give_births(expectation::cold, cold_class);
        for (const unsigned cls : {hot_class, cold_class}) made->allow_births(cls, UINT64_MAX);
    }
    void TearDown() override {
        std::string what;
        EXPECT_TRUE(made->validate(&what)) << what;
        space::destroy(made);
        testing::remove_empty_directory(directory_);
    }
    char* make(std::size_t size, expectation expect, attributes attr = {}, bool guided = true) {
        space::neighbour found;
        void* const object =
            made->allocate_placed(size, attr, {.expect = expect, .guided = guided}, &found);
        EXPECT_NE(object, nullptr);
        EXPECT_EQ(found, space::neighbour::none);
        std::memset(object, 1, size);
        return static_cast<char*>(object);
    }
    unsigned class_of(const void* object) const { return made->class_of(object); }

    space* made = nullptr;

  private:
    std::string directory_;
};

TEST_P(births, lie_in_the_class_of_what_is_expected) {
    const unsigned near = made->near_class();
    char* const cold = make(100, expectation::cold);
    EXPECT_EQ(class_of(cold), cold_class);
    EXPECT_EQ(made->info(cold).size, 104u);
    EXPECT_EQ(class_of(make(100, expectation::hot)), hot_class);
    EXPECT_EQ(class_of(make(100, expectation::cold, {6, false})), cold_class);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(make(64, expectation::cold, {6, false})) % 64, 0u);
    // What may not, or could not come back.
    EXPECT_EQ(class_of(make(100, expectation::cold, {3, true})), near);
    EXPECT_EQ(class_of(make(100, expectation::hot, {3, true})), hot_class);
    EXPECT_EQ(class_of(make(100, expectation::cold, {}, false)), near);
    EXPECT_EQ(class_of(make(5'000, expectation::cold)), new_class) << "too large";
    // Neighbours are a promise.
    space::neighbour found;
    group_name group = 0;
    void* const member = made->allocate_placed(
        100, {}, {.in = &group, .expect = expectation::cold, .guided = true}, &found);
    EXPECT_EQ(class_of(member), near);
    // One that was born elsewhere begins a group like others.
    void* const beside = made->allocate_placed(100, {}, {.near = cold}, &found);
    EXPECT_EQ(class_of(beside), near);
    EXPECT_EQ(found, space::neighbour::found);
    made->allow_births(cold_class, 0);
    EXPECT_EQ(class_of(make(100, expectation::cold)), near);
    EXPECT_EQ(made->counters(cold_class).live_objects, 3u);
}

// Property: a thread's own runs have objects of one attribute set, large and small ones apart; what has another set lies in
// runs that threads share. All keep their bytes, sizes and attributes, whoever frees the others.
TEST_P(births, of_several_sets_and_sizes_keep_what_they_are) {
    struct one {
        char* object;
        std::size_t size;
        attributes attr;
    };
    std::vector<one> all;
    const attributes sets[] = {{}, {6, false}, {3, true}};
    const std::size_t sizes[] = {64, 1024, 192, 15'872};
    for (std::size_t i = 0; i < 3'000; ++i) {
        const attributes attr = sets[i % 7 % 3];
        const std::size_t size = sizes[i % 50 == 0 ? 3 : i % 3];
        all.push_back(
            {make(size, attr.never_cold ? expectation::hot : expectation::cold, attr), size, attr});
        std::memset(all.back().object, static_cast<int>(i), size);
    }
    const auto is_whole = [this](const one& each, int byte) {
        const space::object_info what = made->info(each.object);
        return what.size == each.size && what.attr.never_cold == each.attr.never_cold &&
               what.attr.log2_alignment == each.attr.log2_alignment &&
               each.object[0] == static_cast<char>(byte) &&
               each.object[each.size - 1] == static_cast<char>(byte) &&
               reinterpret_cast<std::uintptr_t>(each.object) % (1U << each.attr.log2_alignment) ==
                   0;
    };
    for (std::size_t i = 0; i < all.size(); ++i) ASSERT_TRUE(is_whole(all[i], static_cast<int>(i)));
    std::string what;
    EXPECT_TRUE(made->validate(&what)) << what;
    std::jthread([&] {
        for (std::size_t i = 0; i < all.size(); i += 2)
            EXPECT_EQ(made->free_checked(all[i].object), free_result::done);
    }).join();
    EXPECT_TRUE(made->validate(&what)) << what;
    made->decommit_free_memory();
    for (std::size_t i = 1; i < all.size(); i += 2)
        ASSERT_TRUE(is_whole(all[i], static_cast<int>(i)));
    std::uint64_t objects = 0;
    for (const unsigned cls : {hot_class, cold_class}) objects += made->counters(cls).live_objects;
    EXPECT_EQ(objects, all.size() / 2);
    for (std::size_t i = 1; i < all.size(); i += 2) made->free(all[i].object);
}

TEST_P(births, count_as_new_memory_and_free_their_runs) {
    const std::uint64_t before = made->new_bytes();
    std::vector<char*> all;
    for (int i = 0; i < 1000; ++i) all.push_back(make(1000, expectation::cold));
    const std::uint64_t runs = 1000 / (run_bytes / 1000) + 1;
    EXPECT_EQ(made->new_bytes() - before, runs * run_bytes);
    EXPECT_EQ(made->births_in_memory(cold_class), (runs - 1) * run_bytes);
    for (char* const object : all) made->free(object);
    // What was freed before it was told of leaves nothing to be told.
    EXPECT_GE(made->decommit_free_memory(), (runs - 1) * run_bytes);
    EXPECT_EQ(made->births_in_memory(cold_class), 0u);
    std::size_t told = 0;
    made->take_births(cold_class, birth_news::memory, [&](char*, char*) { ++told; });
    EXPECT_EQ(told, 0u);
    EXPECT_EQ(made->counters(cold_class).live_objects, 0u);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(class_of(make(1000, expectation::cold)), cold_class);
}

TEST_P(births, are_ordinary_objects_where_there_is_no_room) {
    make(1000, expectation::cold);
    make(1000, expectation::nothing); // so that there is room elsewhere
    {
        const testing::failing_calls calls;
        testing::fault.fallocate = ENOSPC;
        testing::fault.mprotect = !GetParam();
        std::size_t here = 0;
        while (class_of(make(1000, expectation::cold)) == cold_class) ++here;
        EXPECT_LE(here, 2 * mib / 1000); // what was got before
        EXPECT_EQ(made->births_allowed(cold_class), 0u) << "not tried again each time";
    }
    EXPECT_EQ(class_of(make(1000, expectation::cold)), made->near_class());
    made->allow_births(cold_class, UINT64_MAX);
    EXPECT_EQ(class_of(make(1000, expectation::cold)), cold_class);
}

// What could not be opened is not counted as opened.
TEST_P(births, that_found_no_room_took_nothing_of_what_was_allowed) {
    make(1000, expectation::cold);
    make(1000, expectation::nothing); // so that there is room elsewhere
    made->allow_births(cold_class, 10 * mib);
    {
        const testing::failing_calls calls;
        testing::fault.fallocate = ENOSPC;
        testing::fault.mprotect = !GetParam();
        while (class_of(make(1000, expectation::cold)) == cold_class) {
        }
    }
    EXPECT_GE(made->allow_births(cold_class, 0), 8 * mib);
    EXPECT_EQ(made->allow_births(cold_class, 0), 0u);
}

// Property: what is born and dies before the collector looks takes a bounded amount of memory.
TEST(births_that_die, take_no_more_than_a_bound) {
    space* const made = space::create({.range_bytes = 512 * mib}, nullptr);
    ASSERT_NE(made, nullptr);
    made->give_births(expectation::cold, cold_class);
    for (const expectation expect : {expectation::cold, expectation::once})
        for (int i = 0; i < 200'000; ++i) {
            if (i % 1000 == 0) made->allow_births(cold_class);
            if (i % 1000 == 0) made->allow_births_of_once(true);
            space::neighbour found;
            void* const object =
                made->allocate_placed(1000, {}, {.expect = expect, .guided = true}, &found);
            ASSERT_NE(object, nullptr);
            made->free(object);
        }
    EXPECT_LE(made->counters(cold_class).extent_bytes, 97 * mib);
    EXPECT_LE(made->counters(new_class).extent_bytes, 98 * mib);
    made->decommit_free_memory();
    made->allow_births(cold_class);
    EXPECT_GE(made->births_allowed(cold_class), 60 * mib);
    space::destroy(made);
}

// Property: what was born before a fork is whole in both processes, and what each of them gives birth to afterwards is its
// own.
TEST_P(births, go_on_after_a_fork_on_both_sides) {
    std::vector<char*> all;
    for (int i = 0; i < 200; ++i) // in a run of the thread's own, and in one that threads share
        all.push_back(
            make(1000, expectation::cold, i % 2 == 0 ? attributes{} : attributes{4, false}));
    const auto goes_on = [&](char mark) {
        for (char* const object : all) {
            if (object[0] != 1 || object[999] != 1) return false;
            std::memset(object, mark, 1000);
        }
        made->allow_births(cold_class, UINT64_MAX);
        std::vector<char*> more;
        for (int i = 0; i < 200; ++i) {
            more.push_back(
                make(1000, expectation::cold, i % 2 == 0 ? attributes{} : attributes{4, false}));
            if (class_of(more.back()) != cold_class) return false;
            std::memset(more.back(), mark, 1000);
        }
        for (const auto* const these : {&all, &more})
            for (const char* const object : *these)
                if (object[0] != mark || object[999] != mark) return false;
        return made->validate(nullptr);
    };
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    made->fork_prepare();
    const pid_t child = fork();
    if (child == 0) {
        char byte = 0;
        const bool complete = made->fork_child();
        _exit(complete && read(ends[0], &byte, 1) == 1 && goes_on(3) ? 0 : 1);
    }
    made->fork_parent();
    EXPECT_TRUE(goes_on(2));
    ASSERT_EQ(write(ends[1], "g", 1), 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (const char* const object : all) ASSERT_EQ(object[500], 2);
    for (const int end : ends) close(end);
}

INSTANTIATE_TEST_SUITE_P(over, births, ::testing::Bool(), [](const auto& in_file) {
    return std::string(in_file.param ? "a_file" : "memory");
});

// Objects that are used once: in the order of their allocation, beside nothing else, and their memory goes back together.
TEST(once, lies_in_runs_of_its_own) {
    space* const made = space::create({.range_bytes = 64 * mib}, nullptr);
    ASSERT_NE(made, nullptr);
    made->allow_births_of_once(true);
    const auto make = [made](expectation expect) {
        space::neighbour found;
        return static_cast<char*>(made->allocate_placed(200, {}, {.expect = expect}, &found));
    };
    std::vector<char*> stream, others;
    for (int i = 0; i < 2'000; ++i) {
        stream.push_back(make(expectation::once));
        others.push_back(make(i % 2 == 0 ? expectation::hot : expectation::nothing));
        ASSERT_NE(stream.back(), nullptr);
        std::memset(stream.back(), i, 200);
        EXPECT_EQ(made->class_of(stream.back()), made->near_class());
        EXPECT_EQ(made->expected_of(stream.back()), expectation::once);
        EXPECT_EQ(made->info(stream.back()).size, 200u);
        EXPECT_EQ(made->usable_size(stream.back()), 200u);
    }
    std::size_t apart = 0;
    for (std::size_t i = 1; i < stream.size(); ++i) apart += stream[i] != stream[i - 1] + 200;
    EXPECT_LE(apart, 2'000 * 200 / run_bytes + 1);
    std::set<std::uintptr_t> pages;
    for (const char* const object : stream)
        pages.insert(reinterpret_cast<std::uintptr_t>(object) / os::page_size);
    for (const char* const object : others)
        EXPECT_FALSE(pages.contains(reinterpret_cast<std::uintptr_t>(object) / os::page_size));
    for (std::size_t i = 0; i < stream.size(); ++i)
        ASSERT_EQ(stream[i][199], static_cast<char>(i)) << i;
    // A neighbour among them is one like any other.
    space::neighbour found;
    void* const beside = made->allocate_placed(100, {}, {.near = stream[7]}, &found);
    EXPECT_EQ(found, space::neighbour::found);
    EXPECT_EQ(made->expected_of(beside), expectation::nothing);
    EXPECT_EQ(made->free_checked(stream[3] + 8), free_result::no_object);
    EXPECT_EQ(made->free_checked(stream[3]), free_result::done);
    stream.erase(stream.begin() + 3);
    made->decommit_free_memory();
    const std::uint64_t before = made->counters(new_class).extent_bytes;
    for (char* const object : stream) made->free(object);
    EXPECT_GE(made->decommit_free_memory(), 2'000 * 200 / run_bytes * run_bytes);
    EXPECT_LE(made->counters(new_class).extent_bytes + 2'000 * 200 / run_bytes * run_bytes, before);
    std::string what;
    EXPECT_TRUE(made->validate(&what)) << what;
    space::destroy(made);
}

// Property: without a collector, which alone gives runs back, such objects have groups like others, also when it has ended.
// What is put near one of them tells: runs have no groups that it could join.
TEST(once, lies_in_near_where_births_are_not_allowed) {
    space* const made = space::create({.range_bytes = 64 * mib}, nullptr);
    ASSERT_NE(made, nullptr);
    const auto lies_in_a_run = [made] {
        space::neighbour found;
        void* const object = made->allocate_placed(200, {}, {.expect = expectation::once}, &found);
        EXPECT_EQ(made->expected_of(object), expectation::once);
        const void* const beside = made->allocate_placed(100, {}, {.near = object}, &found);
        EXPECT_EQ(found, space::neighbour::found);
        return made->expected_of(beside) == expectation::nothing;
    };
    EXPECT_FALSE(lies_in_a_run());
    made->decommit_free_memory();
    EXPECT_FALSE(lies_in_a_run()) << "who gives memory back allows nothing";
    made->allow_births_of_once(true);
    EXPECT_TRUE(lies_in_a_run());
    made->allow_births_of_once(false);
    EXPECT_FALSE(lies_in_a_run());
    std::string what;
    EXPECT_TRUE(made->validate(&what)) << what;
    space::destroy(made);
}

// NEAR is too small to give up a part of it.
TEST(once, is_an_ordinary_expectation_in_a_tiny_space) {
    space* const made = space::create({.range_bytes = 2 * mib}, nullptr);
    ASSERT_NE(made, nullptr);
    made->allow_births_of_once(true);
    space::neighbour found;
    void* const object = made->allocate_placed(200, {}, {.expect = expectation::once}, &found);
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(made->info(object).size, 200u);
    made->free(object);
    made->decommit_free_memory();
    std::string what;
    EXPECT_TRUE(made->validate(&what)) << what;
    space::destroy(made);
}

} // namespace
} // namespace obase::heap
