// SPDX-License-Identifier: MIT
//
// Whole pages (dense.hpp): in a cold class that lies in a file an object lies on no more pages than it needs where little
// is left out for that, and what is left out is neither an object nor a hole.
#include "heap/space.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "os/memory.hpp"

namespace obase::heap {
namespace {

constexpr unsigned hot_class = 1, cold_class = 2;
constexpr std::size_t mib = 1U << 20;
constexpr std::size_t most_skipped = dense_heap<native>::most_skipped;

struct destroyer {
    void operator()(space* s) const noexcept { space::destroy(s); }
};
using owned_space = std::unique_ptr<space, destroyer>;

owned_space make_space(space_options options) {
    options.range_bytes = 64 * mib;
    std::string why;
    owned_space made(space::create(options, &why));
    EXPECT_NE(made, nullptr) << why;
    return made;
}
owned_space space_with_file() { return make_space({.cold_directory = "/tmp"}); }

struct object {
    char* at;
    std::size_t size;
};
object add(space& s, unsigned cls, std::size_t size) {
    return {static_cast<char*>(s.allocate_dense(cls, size, {})), size};
}
std::vector<object> add_many(space& s, unsigned cls, std::size_t count, std::size_t least,
                             std::size_t most) {
    std::mt19937_64 random(count);
    std::uniform_int_distribution<std::size_t> sizes(least / granule, most / granule);
    std::vector<object> objects(count);
    for (object& o : objects) o = add(s, cls, sizes(random) * granule);
    return objects;
}

std::size_t in_page(const char* p) { return reinterpret_cast<std::uintptr_t>(p) % os::page_size; }
std::size_t pages_of(const object& o) {
    return (in_page(o.at) + o.size + os::page_size - 1) / os::page_size;
}
std::size_t least_pages(const object& o) { return (o.size + os::page_size - 1) / os::page_size; }

void expect_valid(const space& s) {
    std::string what;
    EXPECT_TRUE(s.validate(&what)) << what;
}
void expect_sizes(const space& s, const std::vector<object>& objects) {
    for (const object& o : objects) ASSERT_EQ(s.usable_size(o.at), o.size);
}

TEST(whole_pages, an_object_lies_on_no_more_pages_than_it_needs) {
    const owned_space s = space_with_file();
    for (const std::size_t most : {512U, 1056U, 1360U}) {
        const std::vector<object> objects = add_many(*s, cold_class, 2000, 512, most);
        for (const object& o : objects) ASSERT_EQ(pages_of(o), 1U) << o.size;
        expect_sizes(*s, objects);
    }
    expect_valid(*s);
}

// Else half of a file might be empty.
TEST(whole_pages, but_no_more_than_a_third_of_a_page_is_left_out) {
    const owned_space s = space_with_file();
    const std::vector<object> objects = add_many(*s, cold_class, 4000, 512, max_small_size);
    std::size_t more = 0;
    for (std::size_t i = 1; i < objects.size(); ++i) {
        const char* const end = objects[i - 1].at + objects[i - 1].size;
        if (s->run_of(objects[i].at) != s->run_of(objects[i - 1].at)) continue;
        const auto skipped = static_cast<std::size_t>(objects[i].at - end);
        ASSERT_LE(skipped, most_skipped);
        if (skipped != 0) {
            ASSERT_EQ(in_page(objects[i].at), 0U);
            ASSERT_GT(in_page(end) + objects[i].size, least_pages(objects[i]) * os::page_size)
                << "it would have fit";
        } else if (pages_of(objects[i]) > least_pages(objects[i])) {
            ++more;
            ASSERT_GT(os::page_size - in_page(end), most_skipped);
        }
    }
    EXPECT_GT(more, 100U);
    expect_sizes(*s, objects);
    expect_valid(*s);
}

TEST(whole_pages, only_where_pages_leave_one_by_one) {
    const owned_space s = make_space({.cold_directory = "/tmp",
                                      .file_classes = 1U << cold_class,
                                      .hot_directory = "/tmp",
                                      .hot_file_classes = 1U << hot_class});
    const owned_space in_memory = make_space({});
    for (const auto& [where, cls] :
         {std::pair(s.get(), hot_class), std::pair(in_memory.get(), cold_class)}) {
        std::vector<object> objects = add_many(*where, cls, 500, 1000, 1100);
        for (std::size_t i = 1; i < objects.size(); ++i)
            if (where->run_of(objects[i].at) == where->run_of(objects[i - 1].at)) {
                ASSERT_EQ(objects[i].at, objects[i - 1].at + objects[i - 1].size);
            }
        EXPECT_EQ(where->gap_bytes(cls), 0U);
    }
    // Small objects and long ones are left as they are.
    for (const std::size_t size : {std::size_t{496}, max_small_size + 128}) {
        std::vector<object> objects(200);
        for (object& o : objects) o = add(*s, cold_class, size);
        for (std::size_t i = 1; i < objects.size(); ++i)
            if (s->run_of(objects[i].at) == s->run_of(objects[i - 1].at)) {
                ASSERT_EQ(objects[i].at, objects[i - 1].at + size);
            }
    }
    EXPECT_EQ(s->gap_bytes(cold_class), 0U);
}

// As long as it pays.
TEST(whole_pages, only_while_they_may) {
    const owned_space s = space_with_file();
    const auto on_two_pages = [&] {
        std::size_t found = 0;
        const std::vector<object> objects = add_many(*s, cold_class, 480, 1056, 1056);
        for (const object& o : objects) found += pages_of(o) - 1;
        expect_sizes(*s, objects);
        return found;
    };
    EXPECT_EQ(on_two_pages(), 0U);
    s->leave_gaps(cold_class, false);
    EXPECT_GT(on_two_pages(), 100U);
    s->leave_gaps(cold_class, true);
    EXPECT_EQ(on_two_pages(), 0U);
    s->leave_gaps(hot_class, true); // where pages do not leave one by one they may not
    const std::vector<object> hot = add_many(*s, hot_class, 60, 1056, 1056);
    for (std::size_t i = 1; i < hot.size(); ++i)
        ASSERT_EQ(hot[i].at, hot[i - 1].at + hot[i - 1].size);
    expect_valid(*s);
}

// 1,056 bytes: three in a page, and 928 are left out.
TEST(whole_pages, gaps_are_no_holes) {
    const owned_space s = space_with_file();
    std::vector<object> objects =
        add_many(*s, cold_class, 3 * 48 + 1, 1056, 1056); // the last one seals the third run
    for (std::size_t run = 0; run < 3; ++run) {
        const std::size_t live = s->bytes_in_run(cold_class, run);
        const std::size_t gaps = 15 * 928, room = s->room_of_run(cold_class, run);
        ASSERT_EQ(live, std::size_t{48 * 1056});
        EXPECT_GE(room, live);
        EXPECT_LE(room, run_bytes - gaps + large_granule) << "holes are what could be filled";
    }
    EXPECT_GE(s->gap_bytes(cold_class), 3 * (15 * 928 - 3 * large_granule));
    EXPECT_LE(s->gap_bytes(cold_class), std::size_t{3 * 15 * 928});
    // Full runs are in the extents as a whole, of the one that is filled the first page is.
    std::size_t in_extents = 0;
    s->for_each_extent(cold_class, [&](const char* begin, const char* end) {
        EXPECT_EQ(begin, objects[0].at) << "one stretch";
        in_extents += static_cast<std::size_t>(end - begin);
    });
    EXPECT_EQ(in_extents, 3 * run_bytes + os::page_size);
    const evacuation_choice none = s->select_evacuation(cold_class, .97, mib, {}, 3 * 1300);
    EXPECT_EQ(none.live_bytes, 0U) << "nothing would be won";
    EXPECT_LE(none.hole_bytes, 3U * 1300)
        << "what is left behind the last page, and what rounding makes";
    // What dies is a hole as everywhere.
    for (std::size_t i = 48; i < 96; i += 2) s->free(objects[i].at);
    const evacuation_choice half = s->select_evacuation(cold_class, .75, mib);
    EXPECT_EQ(half.live_bytes, std::size_t{24 * 1056});
    EXPECT_TRUE(s->evacuating(objects[49].at));
    EXPECT_FALSE(s->evacuating(objects[0].at));
    // The gaps of what lives on come with it, those of the dead do not.
    EXPECT_GE(half.hole_bytes, run_bytes / 2);
    EXPECT_LE(half.hole_bytes, run_bytes / 2 + std::size_t{4 * 1300});
    EXPECT_LE(s->gap_bytes(cold_class), std::size_t{5 * 15 * 928 / 2});
    expect_valid(*s);
    // A run without objects goes back, and is filled anew as if nothing had been there.
    for (std::size_t i = 49; i < 96; i += 2) s->free(objects[i].at);
    EXPECT_GE(s->decommit_free_memory(), run_bytes);
    const std::vector<object> small = add_many(*s, cold_class, 800, 80, 96);
    EXPECT_EQ(s->run_of(small[0].at), 1U);
    EXPECT_EQ(s->room_of_run(cold_class, 1), run_bytes);
    expect_sizes(*s, small);
    expect_valid(*s);
}

TEST(whole_pages, long_objects_may_lie_where_middle_ones_did) {
    const owned_space s = space_with_file();
    for (const object& o : add_many(*s, cold_class, 400, 6144, 6144)) s->free(o.at);
    EXPECT_GE(s->decommit_free_memory(), 8 * run_bytes);
    // The second of them begins 512 bytes before a page's end.
    const std::vector<object> objects = add_many(*s, cold_class, 40, 24064, 24064);
    EXPECT_LT(s->run_of(objects[0].at), 8U) << "where others were";
    EXPECT_EQ(objects[1].at, objects[0].at + 24064);
    EXPECT_EQ(s->gap_bytes(cold_class), 0U);
    expect_sizes(*s, objects);
    expect_valid(*s);
}

TEST(whole_pages, a_gap_is_no_object) {
    const owned_space s = space_with_file();
    std::vector<object> objects = add_many(*s, cold_class, 9, 1056, 1056);
    for (const std::size_t i : {2U, 5U}) {
        char* const gap = objects[i].at + 1056;
        ASSERT_EQ(gap + 928, objects[i + 1].at);
        EXPECT_EQ(s->free_checked(gap), free_result::no_object);
    }
    EXPECT_EQ(s->free_checked(objects[2].at), free_result::done);
    EXPECT_EQ(s->free_checked(objects[2].at), free_result::freed_before);
    EXPECT_EQ(s->counters(cold_class).live_objects, 8U);
    expect_valid(*s);
}

// What is undone leaves its mark, which the next object overwrites, be it smaller or larger, with a gap before it or
// without.
TEST(whole_pages, what_is_undone_leaves_no_trace) {
    std::mt19937_64 random(5);
    std::uniform_int_distribution<std::size_t> sizes(64, 512);
    const owned_space s = space_with_file();
    std::vector<object> objects;
    for (std::size_t i = 0; i < 20000; ++i) {
        objects.push_back(add(*s, cold_class, sizes(random) * granule));
        if (random() % 3 != 0) continue;
        s->undo_allocate_dense(objects.back().at);
        objects.pop_back();
        if (!objects.empty()) {
            ASSERT_EQ(s->usable_size(objects.back().at), objects.back().size);
        }
    }
    expect_sizes(*s, objects);
    std::size_t bytes = 0;
    for (const object& o : objects) bytes += o.size;
    EXPECT_EQ(s->counters(cold_class).live_bytes, bytes);
    expect_valid(*s);
}

// A third of a frozen file may be gaps: to write it anew would win nothing.
TEST(whole_pages, a_frozen_file_is_not_emptied_for_its_gaps) {
    const owned_space s = space_with_file();
    const std::vector<object> objects =
        add_many(*s, cold_class, 2 * 16 * 64, 1368, 1368); // two in a page, 4 MiB
    s->fork_prepare();
    s->fork_parent();
    // With the gaps what is dead would be more than half of what lives.
    for (std::size_t i = 0; i < objects.size(); i += 20) s->free(objects[i].at);
    EXPECT_EQ(s->select_evacuation(cold_class, .75, 64 * mib).live_bytes, 0U);
    EXPECT_FALSE(s->evacuating_frozen_files(cold_class));
    for (std::size_t i = 0; i < objects.size(); ++i)
        if (i % 20 != 0 && i % 2 == 0) s->free(objects[i].at);
    EXPECT_NE(s->select_evacuation(cold_class, .75, 64 * mib).live_bytes, 0U);
    EXPECT_TRUE(s->evacuating_frozen_files(cold_class));
    expect_valid(*s);
}

} // namespace
} // namespace obase::heap
