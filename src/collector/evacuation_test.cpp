// SPDX-License-Identifier: MIT
//
// Which runs are chosen, in which order, and that their lists hold the slots of their objects and no
// others. A slot is a number here.
#include "collector/evacuation.hpp"

#include "os/memory.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace obase::collector {
namespace {

constexpr std::size_t run_bytes = 65536;
constexpr std::size_t object_bytes = 1024;
constexpr std::size_t per_run = run_bytes / object_bytes;

using table = evacuation<std::uint64_t>;

// A heap of full runs, of which `leaving` objects of each are to leave.
struct heap {
    table runs;
    std::map<std::size_t, table::run_state> states;

    explicit heap(std::size_t count) { EXPECT_TRUE(runs.begin(count, 1. / 32)); }
    void fill(std::size_t run, std::size_t leaving, std::size_t seen = per_run,
              bool newborn = false) {
        for (std::size_t i = 0; i < seen; ++i)
            runs.note(run, i < leaving ? object_bytes : 0, newborn && i == seen / 2);
        states[run] = {per_run, run_bytes, run_bytes};
    }
    bool choose(std::size_t list_bytes = 1 << 20) {
        return runs.choose(list_bytes, [this](std::size_t run) { return states[run]; });
    }
    std::vector<std::size_t> chosen() const {
        std::vector<std::size_t> all;
        for (std::size_t i = 0; i < runs.chosen_runs(); ++i) all.push_back(runs.run(i));
        return all;
    }
};

using list = std::vector<std::size_t>;

TEST(emptying, chooses_what_something_leaves_and_nothing_was_born_in) {
    heap h(6);
    h.fill(0, 0);                           // nothing leaves
    h.fill(1, per_run);                     // all of it
    h.fill(2, per_run / 16, per_run, true); // one is newborn
    h.fill(3, per_run / 2, per_run / 2);    // half of the objects have no slot
    h.fill(4, 1);                           // too little to be worth it
    h.fill(5, 6);                           // a tenth
    EXPECT_TRUE(h.choose());
    EXPECT_EQ(h.chosen(), (list{1, 3, 4, 5}));
    for (std::size_t i = 0; i < 4; ++i) {
        const bool whole = h.runs.run(i) == 1 || h.runs.run(i) == 5;
        EXPECT_EQ(h.runs.run_is_whole(h.runs.run(i)), whole) << i;
    }
    h.runs.leave_rest(0);
    EXPECT_FALSE(h.runs.run_is_whole(1));
    EXPECT_FALSE(h.choose());
    EXPECT_EQ(h.chosen(), list{});
}

// A run in which little is left is emptied for its holes, too.
TEST(emptying, holes_count_as_gain) {
    heap h(1);
    h.fill(0, 1, per_run / 2);
    h.states[0] = {per_run / 2, run_bytes / 2, run_bytes};
    EXPECT_TRUE(h.choose());
    EXPECT_EQ(h.chosen(), (list{0}));
    EXPECT_TRUE(h.runs.run_is_whole(h.runs.run(0)));
    EXPECT_EQ(h.runs.bytes(0), run_bytes / 2);
}

// Runs may differ in size: the gain is a share of each.
TEST(emptying, counts_gain_by_the_runs_own_size) {
    heap h(2);
    h.fill(0, 4);
    h.fill(1, 4);
    h.states[0] = {per_run, 4 * run_bytes, 4 * run_bytes};
    h.states[1] = {per_run, run_bytes, run_bytes};
    EXPECT_TRUE(h.choose());
    EXPECT_EQ(h.chosen(), (list{0, 1}));
    EXPECT_FALSE(h.runs.run_is_whole(0)) << "less than a thirtieth";
    EXPECT_TRUE(h.runs.run_is_whole(1));
    EXPECT_TRUE(h.runs.begin(2, 1. / 32));
    h.fill(0, 4);
    h.states[0] = {per_run, 3 * run_bytes, 4 * run_bytes};
    EXPECT_TRUE(h.choose());
    EXPECT_TRUE(h.runs.run_is_whole(0));
}

// Where no holes may be made, runs that only a part would leave are left out, and their wishes are counted.
TEST(emptying, leaves_out_what_would_make_holes) {
    heap h(4);
    h.fill(0, 1);
    h.fill(1, per_run);
    h.fill(2, 1);
    h.fill(3, 0);
    h.states[3].compacted = true;
    EXPECT_TRUE(h.runs.choose(1 << 20, [&h](std::size_t run) { return h.states[run]; }, false));
    EXPECT_EQ(h.chosen(), (list{1, 3}));
    EXPECT_EQ(h.runs.left_out(), 2u);
    EXPECT_TRUE(h.runs.begin(4, 1. / 32));
    EXPECT_EQ(h.runs.left_out(), 0u);
}

TEST(emptying, without_memory_for_lists_chooses_nothing) {
    heap h(2);
    h.fill(0, per_run);
    h.fill(1, per_run);
    os::memory_calls calls = os::real_memory_calls();
    calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
        errno = ENOMEM;
        return MAP_FAILED;
    };
    os::use_memory_calls(&calls);
    EXPECT_FALSE(h.choose());
    os::use_memory_calls(nullptr);
    EXPECT_EQ(h.chosen(), list{});
    EXPECT_EQ(h.runs.list_bytes(), 0u);
    h.runs.list(0, 1); // is not chosen
    EXPECT_FALSE(h.choose()) << "nor later in this window";
}

TEST(emptying, goes_on_where_the_memory_for_lists_ended) {
    heap h(10);
    for (std::size_t run = 0; run < 10; ++run) h.fill(run, per_run);
    std::vector<list> passes;
    while (h.choose(3 * per_run * sizeof(std::uint64_t))) {
        passes.push_back(h.chosen());
        for (std::size_t run = 0; run < 10; ++run)
            EXPECT_EQ(h.runs.is_chosen(run), run / 3 == passes.size() - 1) << run;
    }
    EXPECT_EQ(passes, (std::vector<list>{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9}}));
    // One run at least, however little memory there may be.
    heap small(2);
    for (std::size_t run = 0; run < 2; ++run) small.fill(run, per_run);
    EXPECT_TRUE(small.choose(1));
    EXPECT_EQ(small.chosen(), (list{0}));
    EXPECT_EQ(small.runs.list_bytes(), per_run * sizeof(std::uint64_t));
    // Where other tiers have taken all of it: none, and nothing is forgotten.
    EXPECT_FALSE(small.choose(0));
    EXPECT_EQ(small.runs.chosen_runs(), 0u);
    EXPECT_EQ(small.runs.list_bytes(), 0u);
    EXPECT_FALSE(small.runs.is_chosen(0));
    EXPECT_TRUE(small.choose(1));
    EXPECT_EQ(small.chosen(), (list{1}));
}

// What the heap wants to compact is chosen though nothing leaves it, and emptied however little of it was
// seen.
TEST(emptying, what_is_compacted_is_emptied_as_a_whole) {
    heap h(5);
    h.fill(0, 0);
    h.fill(1, 0, per_run / 8);
    h.fill(2, 0, per_run, true);            // a newborn object in it
    h.fill(3, 0, 0);                        // nothing was seen
    h.fill(4, per_run / 16, per_run, true); // not compacted
    for (std::size_t run = 0; run < 4; ++run) h.states[run].compacted = true;
    EXPECT_TRUE(h.choose());
    EXPECT_EQ(h.chosen(), (list{0, 1, 2}));
    for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(h.runs.run_is_whole(h.runs.run(i))) << i;
        EXPECT_EQ(h.runs.born_since(i), i == 2) << "else what is newborn counts as touched";
    }
}

TEST(emptying, what_much_leaves_is_chosen_with_a_newborn_object) {
    heap h(2);
    h.fill(0, per_run / 8, per_run, true);
    h.fill(1, per_run / 8 - 1, per_run, true);
    EXPECT_TRUE(h.choose());
    ASSERT_EQ(h.chosen(), (list{0}));
    EXPECT_TRUE(h.runs.run_is_whole(0));
    EXPECT_TRUE(h.runs.born_since(0));
}

// To move what stays is worth it where that empties the run.
TEST(emptying, the_rest_stays_where_some_cannot_move) {
    heap h(3);
    for (std::size_t run = 0; run < 3; ++run) h.fill(run, per_run / 2);
    ASSERT_TRUE(h.choose());
    h.runs.note_unmovable(0, per_run / 16);
    h.runs.note_unmovable(1, per_run / 16 + 1);
    h.runs.leave_rest(2);
    h.runs.note_unmovable(2, 0);
    EXPECT_TRUE(h.runs.rest_moves(0));
    EXPECT_FALSE(h.runs.rest_moves(1));
    EXPECT_TRUE(h.runs.run_is_whole(h.runs.run(1))) << "and is opened as others";
    EXPECT_FALSE(h.runs.rest_moves(2));
}

TEST(emptying, lists_the_slots_of_each_chosen_run) {
    heap h(4);
    for (const std::size_t run : {1u, 3u}) h.fill(run, per_run);
    ASSERT_TRUE(h.choose());
    for (std::uint64_t slot = 0; slot < per_run; ++slot)
        for (std::size_t run = 0; run < 5; ++run) h.runs.list(run, 1000 * run + slot);
    h.runs.list(1, 1); // one more than was seen: no room
    for (std::size_t i = 0; i < 2; ++i) {
        const auto slots = h.runs.slots(i);
        ASSERT_EQ(slots.size(), per_run);
        for (std::uint64_t slot = 0; slot < per_run; ++slot)
            EXPECT_EQ(slots[slot], 1000 * h.runs.run(i) + slot);
    }
}

TEST(emptying, a_slot_that_moved_is_listed_where_it_is) {
    heap h(3);
    for (const std::size_t run : {0u, 2u}) h.fill(run, per_run);
    ASSERT_TRUE(h.choose());
    for (const std::size_t run : {0u, 2u})
        for (std::uint64_t slot = 1; slot <= 3; ++slot) h.runs.list(run, slot);
    h.runs.relocate(2, 3, 33);
    h.runs.relocate(1, 1, 99); // not chosen
    h.runs.relocate(2, 7, 99); // not listed
    EXPECT_EQ(std::vector<std::uint64_t>(h.runs.slots(0).begin(), h.runs.slots(0).end()),
              (std::vector<std::uint64_t>{1, 2, 3}));
    EXPECT_EQ(std::vector<std::uint64_t>(h.runs.slots(1).begin(), h.runs.slots(1).end()),
              (std::vector<std::uint64_t>{1, 2, 33}));
}

TEST(emptying, what_was_dropped_is_neither_chosen_nor_listed) {
    heap h(2);
    for (std::size_t run = 0; run < 2; ++run) h.fill(run, per_run);
    ASSERT_TRUE(h.choose());
    h.runs.drop(0);
    EXPECT_FALSE(h.runs.is_chosen(0));
    h.runs.list(0, 1);
    EXPECT_TRUE(h.runs.slots(0).empty());
    EXPECT_TRUE(h.runs.is_chosen(1));
}

TEST(emptying, a_birth_is_noted_for_its_run_and_for_this_turn_only) {
    heap h(2);
    for (std::size_t run = 0; run < 2; ++run) h.fill(run, per_run);
    ASSERT_TRUE(h.choose());
    EXPECT_FALSE(h.runs.born_since(0));
    h.runs.note_birth(0);
    EXPECT_TRUE(h.runs.born_since(0));
    EXPECT_FALSE(h.runs.born_since(1));
    ASSERT_TRUE(h.runs.begin(2, 0));
    for (std::size_t run = 0; run < 2; ++run) h.fill(run, per_run);
    ASSERT_TRUE(h.choose());
    EXPECT_FALSE(h.runs.born_since(0));
}

// Runs that were begun during the scan have no tally.
TEST(emptying, runs_beyond_the_table_are_ignored) {
    heap h(1);
    h.runs.note(1, object_bytes, false);
    EXPECT_FALSE(h.choose());
    EXPECT_FALSE(h.runs.is_chosen(7));
}

TEST(emptying, begins_anew_in_each_window) {
    heap h(2);
    h.fill(0, per_run);
    ASSERT_TRUE(h.choose());
    ASSERT_TRUE(h.runs.begin(2, 0));
    EXPECT_FALSE(h.runs.is_chosen(0));
    h.fill(1, per_run);
    EXPECT_TRUE(h.choose());
    EXPECT_EQ(h.chosen(), (list{1}));
    h.runs.end();
    EXPECT_FALSE(h.choose());
}

} // namespace
} // namespace obase::collector
