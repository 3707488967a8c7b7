// SPDX-License-Identifier: MIT
//
// Objects above max_small_size in the dense classes (dense.hpp): where they lie, what memory and storage they
// take, and what is given back of it.
#include "heap/space.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heap/sanitized.hpp"
#include "os/process.hpp"
#include "testing/failing_calls.hpp"

namespace obase::heap {
namespace {

constexpr unsigned hot_class = 1, cold_class = 2;
constexpr std::size_t kib = 1024, mib = 1U << 20;
constexpr std::size_t long_run_bytes = dense_heap<native>::long_run_bytes;

using testing::fault;

class long_runs : public ::testing::TestWithParam<bool> { // in a file or not
  protected:
    struct object {
        char* at;
        std::size_t size;
        unsigned seed;
    };

    void SetUp() override {
        std::string why;
        s = space::create({.range_bytes = 256 * mib, .cold_directory = GetParam() ? "/tmp" : ""},
                          &why);
        ASSERT_NE(s, nullptr) << why;
        cls = GetParam() ? cold_class : hot_class;
    }
    void TearDown() override {
        if (s == nullptr) return;
        fault = {};
        expect_valid();
        space::destroy(s);
    }
    void expect_valid() const {
        std::string what;
        EXPECT_TRUE(s->validate(&what)) << what;
    }

    // False: no room.
    bool add(std::size_t asked, attributes attr = {}) {
        const std::size_t size = object_size(asked, attr);
        void* const at = s->allocate_dense(cls, size, attr);
        if (at == nullptr) return false;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % (std::size_t{1} << attr.log2_alignment),
                  0U);
        objects.push_back({static_cast<char*>(at), size, ++seeds_});
        fill(objects.back());
        return true;
    }
    static void fill(const object& o) {
        std::minstd_rand random(o.seed);
        for (std::size_t i = 0; i < o.size; i += 8) {
            const std::uint64_t word = random();
            std::memcpy(o.at + i, &word, 8);
        }
    }
    static bool intact(const object& o) {
        std::minstd_rand random(o.seed);
        for (std::size_t i = 0; i < o.size; i += 8) {
            const std::uint64_t word = random();
            if (std::memcmp(o.at + i, &word, 8) != 0) return false;
        }
        return true;
    }
    void check_all() const {
        std::size_t bytes = 0;
        for (const object& o : objects) {
            ASSERT_TRUE(intact(o));
            ASSERT_EQ(s->usable_size(o.at), o.size);
            ASSERT_EQ(s->info(o.at).size, o.size);
            ASSERT_TRUE(o.size <= max_small_size || s->may_be_long(o.at));
            bytes += o.size;
        }
        EXPECT_EQ(s->counters(cls).live_objects, objects.size());
        EXPECT_EQ(s->counters(cls).live_bytes, bytes);
        expect_valid();
    }
    template <class Condition>
    void free_if(Condition&& condition) {
        std::size_t i = 0;
        std::erase_if(objects, [&](const object& o) {
            if (!condition(i++)) return false;
            s->free(o.at);
            return true;
        });
    }
    std::size_t resident() const {
        std::size_t bytes = 0;
        const std::size_t end = s->runs_of(cls);
        for (std::size_t run = 0; run < end; ++run)
            bytes += os::resident_in(s->range_begin(cls) + run * run_bytes, run_bytes);
        return bytes;
    }
    std::size_t live() const { return s->counters(cls).live_bytes; }
    // Moves what select_evacuation() chose.
    void move_chosen() {
        for (object& o : objects) {
            if (!s->evacuating(o.at)) continue;
            char* const to = static_cast<char*>(s->allocate_dense(cls, o.size, {}));
            ASSERT_NE(to, nullptr);
            ASSERT_FALSE(s->evacuating(to));
            std::memcpy(to, o.at, o.size);
            s->free(o.at);
            o.at = to;
        }
    }

    space* s = nullptr;
    unsigned cls = hot_class;
    std::vector<object> objects;

  private:
    unsigned seeds_ = 0;
    testing::failing_calls calls_;
};
INSTANTIATE_TEST_SUITE_P(in_memory_and_in_a_file, long_runs, ::testing::Bool());

// Any size up to the largest, small ones between them, and alignments up to a page.
TEST_P(long_runs, objects_of_every_size_keep_their_bytes) {
    std::minstd_rand random(7);
    for (int i = 0; i < 300; ++i) {
        const std::size_t sizes[] = {16 + random() % 1000,
                                     max_small_size + 1 + random() % (48 * kib),
                                     64 * kib + random() % (400 * kib), max_small_size};
        const auto alignment = static_cast<std::uint8_t>(3 + (i % 5 == 0 ? random() % 10 : 0));
        ASSERT_TRUE(add(sizes[random() % 4], {alignment, i % 7 == 0}));
    }
    ASSERT_TRUE(add(max_dense_size));
    ASSERT_TRUE(add(max_dense_size - 5));
    EXPECT_FALSE(add(max_dense_size + 1)) << "larger ones stay in LARGE";
    check_all();
    free_if([&](std::size_t i) { return i % 3 == 0; });
    s->decommit_free_memory();
    check_all();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(add(20 * kib + 1000 * static_cast<unsigned>(i)));
    check_all();
    free_if([](std::size_t) { return true; });
    s->decommit_free_memory();
    // Of each kind, one run may still be filled.
    EXPECT_LE(s->counters(cls).extent_bytes, 40 * (max_dense_size + long_run_bytes));
}

// Nothing larger than a page is lost between them, and hardly anything is known of each: the side tables
// of small objects take 1/64.
TEST_P(long_runs, take_no_more_memory_than_their_objects) {
    if (sanitized) GTEST_SKIP() << "the shadow is resident too";
    const std::size_t before = os::resident_bytes();
    for (int i = 0; i < 3000; ++i) ASSERT_TRUE(add(20 * kib + 4));
    EXPECT_GE(resident(), live());
    EXPECT_LE(resident(), live() + live() / 50);
    if (!GetParam()) {
        EXPECT_LE(s->counters(cls).extent_bytes, live() + live() / 50);
    }
    EXPECT_LE(s->counters(cls).extent_bytes, live() + live() / 15 + long_run_bytes);
    const std::size_t after = os::resident_bytes();
    EXPECT_LE(after - before, live() + live() / 40) << "with all that is known of them";
    std::size_t extents = 0;
    s->for_each_extent(
        cls, [&](char* begin, char* end) { extents += static_cast<std::size_t>(end - begin); });
    EXPECT_LE(extents, live() + live() / 50) << "what is under no object is in no extent";
    check_all();
}

// The memory and the storage of what nothing is left in go back, whole long runs at a time, and can be used by
// objects of other sizes.
TEST_P(long_runs, are_free_when_their_last_object_is) {
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(add(150 * kib)); // one to a run of 3 * 64 KiB
    if (GetParam()) {
        EXPECT_GE(s->decommit_free_memory(), 190 * run_bytes) << "storage";
    }
    const std::size_t all = s->counters(cls).extent_bytes;
    EXPECT_LE(all, 200 * 3 * run_bytes + long_run_bytes) << "what is not needed of a run is free";
    free_if([](std::size_t i) { return i % 2 == 0; });
    const std::size_t returned = s->decommit_free_memory();
    EXPECT_GE(returned, 100 * 150 * kib);
    EXPECT_LE(resident(), live() + live() / 20);
    EXPECT_LE(s->counters(cls).extent_bytes, all / 2 + long_run_bytes);
    check_all();
    const std::size_t runs = s->runs_of(cls);
    for (int i = 0; i < 2000; ++i) ASSERT_TRUE(add(6 * kib));
    EXPECT_EQ(s->runs_of(cls), runs) << "they lie in the gaps";
    check_all();
    free_if([](std::size_t i) { return i >= 100; });
    s->decommit_free_memory();
    for (int i = 0; i < 40; ++i) ASSERT_TRUE(add(180 * kib));
    EXPECT_EQ(s->runs_of(cls), runs) << "and so do large ones again";
    check_all();
}

// A run whose pages are still there from before takes no memory where it is not filled.
TEST_P(long_runs, do_not_keep_the_pages_of_what_was_there_before) {
    if (sanitized) GTEST_SKIP() << "the shadow is resident too";
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(add(60 * kib));
    free_if([](std::size_t) { return true; }); // its memory is not returned
    std::vector<std::uint32_t> runs;
    for (std::uint32_t run = 0; run < s->runs_of(cls); ++run) runs.push_back(run);
    fault.madvise = fault.punch = true;
    pacer goes_on;
    s->open_runs(cls, runs.data(), runs.size(), goes_on); // they are free, and keep their pages
    fault = {};
    const std::size_t dirty = resident();
    ASSERT_GE(dirty, 90 * 60 * kib);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(add(130 * kib));
    // Ten runs of three and what is still open were taken, and have no page but of objects.
    EXPECT_LE(resident(), dirty - 10 * 3 * run_bytes + live() + 10 * os::page_size);
    check_all();
}

// Emptied as a whole, the emptiest by share first; its holes are those below what it was filled to.
TEST_P(long_runs, are_evacuated) {
    for (int i = 0; i < 240; ++i) ASSERT_TRUE(add(20 * kib)); // 12 to a run, 240 KiB
    ASSERT_TRUE(add(200 * kib));                              // seals the last of them
    const std::size_t room = 240 * kib;
    EXPECT_EQ(s->room_of_run(cls, s->run_of(objects[0].at)), room);
    EXPECT_EQ(s->length_of_run(cls, s->run_of(objects[0].at)), 4U);
    EXPECT_EQ(s->run_of(objects[11].at), s->run_of(objects[0].at));
    EXPECT_NE(s->run_of(objects[12].at), s->run_of(objects[0].at));
    evacuation_choice none = s->select_evacuation(cls, 0.75, 64 * mib);
    EXPECT_EQ(none.live_bytes, 0U);
    EXPECT_EQ(none.hole_bytes, 0U) << "the rest of a run was never filled: no hole";
    // Half of the first ten runs, and two of the next.
    free_if([](std::size_t i) { return (i < 120 && i % 2 == 0) || i == 125 || i == 126; });
    const evacuation_choice chosen = s->select_evacuation(cls, 0.75, 64 * mib);
    EXPECT_EQ(chosen.live_bytes, 60 * 20 * kib);
    EXPECT_EQ(chosen.hole_bytes, 62 * 20 * kib);
    EXPECT_FALSE(s->evacuating(objects[60].at));
    const std::size_t before = resident();
    std::vector<std::uint32_t> emptied;
    for (std::size_t i = 0; i < 60; i += 6)
        emptied.push_back(static_cast<std::uint32_t>(s->run_of(objects[i].at)));
    move_chosen();
    pacer goes_on;
    EXPECT_EQ(s->open_runs(cls, emptied.data(), emptied.size(), goes_on), 10 * long_run_bytes);
    EXPECT_LE(resident(), before - 10 * room + 60 * 20 * kib + long_run_bytes / 4);
    check_all();
    // What is denser follows where few holes are to stay.
    EXPECT_EQ(s->select_evacuation(cls, 0.5, 64 * mib, {}, 0).live_bytes, 10 * 20 * kib);
    const auto all = [](std::size_t) { return true; };
    EXPECT_EQ(s->select_evacuation(cls, 0.9, 64 * mib, run_filter(all)).live_bytes, 0U);
}

// The last object is taken back: its place is used again, and its beginning is forgotten.
TEST_P(long_runs, an_undone_object_leaves_no_trace) {
    ASSERT_TRUE(add(20 * kib));
    void* const a = s->allocate_dense(cls, 40 * kib, {});
    s->undo_allocate_dense(a);
    void* const b = s->allocate_dense(cls, 300 * kib, {}); // another run
    s->undo_allocate_dense(b);
    ASSERT_TRUE(add(17 * kib));
    EXPECT_EQ(objects[1].at, b);
    EXPECT_EQ(s->info(objects[1].at + 17 * kib).size, 0U);
    ASSERT_TRUE(add(18 * kib));
    EXPECT_EQ(objects[2].at, objects[1].at + 17 * kib);
    check_all();
}

// A disk, or memory, of which little is left: no object is in two places, and what fits is taken.
TEST_P(long_runs, no_room_means_no_object) {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(add(100 * kib));
    free_if([](std::size_t i) { return i % 2 == 0; });
    s->decommit_free_memory();
    const auto failures = s->failures();
    if (GetParam())
        fault.fallocate = ENOSPC;
    else
        fault.mprotect = true;
    int more = 0;
    while (add(250 * kib)) ++more;
    EXPECT_LE(more, 40) << "what was made ready before";
    EXPECT_EQ(s->failures(), failures + 1);
    check_all();
    fault = {};
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(add(250 * kib));
    check_all();
}

// Where no long run of the usual length is left, a shorter one will do.
TEST_P(long_runs, the_last_runs_are_used) {
    s->free(s->allocate(8, {}));
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(add(8 * kib)); // two runs, so two are left over
    while (add(200 * kib)) {
    }
    const std::size_t before = objects.size();
    EXPECT_GE(live(), 256 * mib * 3 / 4 - mib);
    while (add(33 * kib)) {
    }
    EXPECT_GT(objects.size(), before);
    EXPECT_GE(objects.back().at, s->range_begin(cls) + 256 * mib - 2 * run_bytes)
        << "fewer than are usual, where none was before";
    check_all();
}

// A gap of four runs of which one was taken for small objects.
TEST_P(long_runs, lie_in_gaps_that_are_a_run_short) {
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(add(250 * kib));
    free_if([](std::size_t i) { return i == 0 || i == 2 || i == 4; });
    s->decommit_free_memory();
    ASSERT_TRUE(add(8 * kib));
    const std::size_t runs = s->runs_of(cls);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(add(150 * kib));
    EXPECT_EQ(s->runs_of(cls), runs);
    check_all();
    ASSERT_TRUE(add(150 * kib));
    EXPECT_GT(s->runs_of(cls), runs) << "there are no more gaps";
}

// Though nothing else is put into their class: an object of 4 MiB would leave as much in each that it passes through.
TEST_P(long_runs, that_are_open_are_free_when_their_last_object_is) {
    for (const std::size_t size : {20 * kib, 250 * kib, 4 * mib}) {
        ASSERT_TRUE(add(size));
        check_all();
        free_if([](std::size_t) { return true; });
        s->decommit_free_memory();
        EXPECT_EQ(s->counters(cls).extent_bytes, 0u) << size;
        EXPECT_EQ(resident(), 0u) << size;
        expect_valid();
    }
    ASSERT_TRUE(add(20 * kib));
    const std::size_t runs = s->counters(cls).runs;
    s->decommit_free_memory();
    ASSERT_TRUE(add(20 * kib));
    EXPECT_EQ(s->counters(cls).runs, runs) << "what is in use goes on being filled";
    check_all();
}

TEST_P(long_runs, that_are_open_are_evacuated_when_they_have_holes) {
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(add(50 * kib));
    s->select_evacuation(cls, .75, mib);
    for (const object& o : objects) EXPECT_FALSE(s->evacuating(o.at));
    free_if([](std::size_t i) { return i < 3; });
    s->select_evacuation(cls, .75, mib);
    EXPECT_TRUE(s->evacuating(objects.back().at));
    move_chosen();
    s->decommit_free_memory();
    EXPECT_LE(resident(), 64 * kib);
    check_all();
}

// What was given back has no storage.
TEST_P(long_runs, storage_comes_before_objects) {
    if (!GetParam()) GTEST_SKIP() << "storage is a file's";
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(add(250 * kib));
    free_if([](std::size_t i) { return i < 7; });
    s->decommit_free_memory();
    fault.fallocate = ENOSPC;
    EXPECT_FALSE(add(250 * kib));
    check_all();
    fault = {};
    ASSERT_TRUE(add(250 * kib));
    check_all();
}

TEST_P(long_runs, wrong_frees_are_found) {
    ASSERT_TRUE(add(20 * kib));
    ASSERT_TRUE(add(100 * kib));
    ASSERT_TRUE(add(20 * kib));
    char* const middle = objects[1].at;
    for (const std::size_t inside : {8U, 128U, 65536U, 90000U})
        EXPECT_EQ(s->free_checked(middle + inside), free_result::no_object) << inside;
    EXPECT_EQ(s->free_checked(middle), free_result::done);
    EXPECT_EQ(s->free_checked(middle), free_result::freed_before);
    EXPECT_EQ(s->free_checked(s->range_begin(cls) + 128 * mib), free_result::no_object);
    objects.erase(objects.begin() + 1);
    check_all();
    free_if([](std::size_t) { return true; });
}

} // namespace
} // namespace obase::heap
