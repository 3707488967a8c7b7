// SPDX-License-Identifier: MIT
//
// Frees of what is not there to be freed, through the C interface and by owners: counted and without
// effect, or, where frees are checked (OBASE_CHECK_FREES), the end
// of the program with one line.
#include "testing/child_process.hpp"

#include <obase/obase.h>
#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ostream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using obase::testing::require;
using obase::testing::run_in_child;

#if defined(OBASE_DEBUG_CHECKS)
constexpr bool checked_by_default = true;
#else
constexpr bool checked_by_default = false;
#endif

// As the statistics have it, after a window.
long counted() {
    require(obase_collect_now() == 0, "a window");
    char* text = obase_statistics_json();
    require(text != nullptr, "statistics");
    const char* at = std::strstr(text, "\"invalid_frees\":");
    const long count = at == nullptr ? -1 : std::atol(at + std::strlen("\"invalid_frees\":"));
    std::free(text);
    return count;
}

int heap_of(const void* address) { return obase::runtime::get().heap_of(address); }

char* make(std::size_t bytes) {
    auto* made = static_cast<char*>(obase_alloc(bytes, nullptr));
    require(made != nullptr, "memory");
    std::memset(made, 0x42, bytes);
    return made;
}
bool is_whole(const char* object, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (object[i] != 0x42) return false;
    return true;
}

// The heap hands out nothing twice, and nothing of `kept`.
void expect_sound(std::size_t bytes, const char* kept = nullptr) {
    std::vector<char*> made;
    for (int i = 0; i < 200; ++i) made.push_back(make(bytes));
    std::vector<char*> sorted = made;
    if (kept != nullptr) sorted.push_back(const_cast<char*>(kept));
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 1; i < sorted.size(); ++i)
        require(static_cast<std::size_t>(sorted[i] - sorted[i - 1]) >= bytes, "objects overlap");
    for (char* object : made) obase_free(object);
}

// An object of a guide, moved out of NEW and taken out of the guide again.
char* make_moved(std::size_t bytes) {
    obase_guide guide;
    obase_guide_init(&guide);
    obase_guide_exchange(&guide, make(bytes));
    char* now = nullptr;
    for (int window = 0; window < 60 && (now == nullptr || heap_of(now) == 0); ++window) {
        const auto outer = obase_scope_enter();
        now = static_cast<char*>(obase_guide_get(&guide));
        obase_scope_exit(outer);
        require(obase_collect_now() == 0, "a window");
    }
    now = static_cast<char*>(obase_guide_exchange(&guide, nullptr));
    require(heap_of(now) > 0, "the object has moved");
    obase_guide_destroy(&guide);
    return now;
}

// An object that the heaps had no room for.
char* make_foreign(std::vector<char*>& others) {
    for (int i = 0; i < 1000; ++i) {
        char* made = make(1 << 20);
        if (heap_of(made) < 0) return made;
        others.push_back(made);
    }
    require(false, "the heaps are never full");
    return nullptr;
}

// The mistakes, each of them once. `small` heaps: of a size that can be filled.
struct mistake {
    const char* name;
    const char* words; // of the line that ends the program
    void (*make)();
    long times;
    bool small_heaps = false;
};

const mistake mistakes[] = {
    {"twice_in_new", "was freed before",
     [] {
         char* object = make(64);
         obase_free(object);
         obase_free(object);
         expect_sound(64);
     },
     1},
    {"twice_in_new_of_eight_bytes", "was freed before",
     [] {
         obase_allocation_options how = {};
         how.alignment = 8;
         void* object = obase_alloc(8, &how);
         obase_free(object);
         obase_free(object);
         void* first = obase_alloc(8, &how);
         require(first != obase_alloc(8, &how), "handed out twice");
     },
     1},
    {"twice_with_others_between", "was freed before",
     [] {
         std::vector<char*> objects;
         for (int i = 0; i < 600; ++i) objects.push_back(make(48));
         for (char* object : objects) obase_free(object);
         for (int i = 0; i < 600; i += 7) obase_free(objects[static_cast<std::size_t>(i)]);
         expect_sound(48);
     },
     86},
    {"inside_of_new", "no object begins there",
     [] {
         char* object = make(64);
         obase_free(object + 16);
         obase_free(object + 1);
         require(is_whole(object, 64), "the object is as it was");
         expect_sound(64, object);
         obase_free(object);
     },
     2},
    {"never_used_in_new", "no object begins there",
     [] {
         char* object = make(64);
         obase_free(object + (std::size_t{1} << 29));
         expect_sound(64, object);
     },
     1},
    {"never_used_in_other_heaps", "no object begins there",
     [] {
         obase_free(make_moved(64) + (std::size_t{1} << 28));
         obase_free(make(100'000) + (std::size_t{1} << 28) / 4096 * 4096);
     },
     2},
    {"behind_the_last_block_of_a_run", "no object begins there",
     [] {
         char* object = make(48); // 1365 in a run, and a rest of 16 bytes
         const auto run = reinterpret_cast<std::uintptr_t>(object) & ~std::uintptr_t{0xFFFF};
         obase_free(reinterpret_cast<void*>(run + 1365 * 48));
         expect_sound(48, object);
     },
     1},
    {"twice_after_its_run_went_back", "no object begins there",
     [] {
         std::vector<char*> objects;
         for (int i = 0; i < 10'000; ++i) objects.push_back(make(64));
         for (char* object : objects) obase_free(object);
         require(obase_collect_now() == 0, "a window");
         obase_free(objects[5'000]);
         expect_sound(64);
     },
     1},
    {"twice_where_freed_objects_are_poisoned", "was freed before",
     [] {
         setenv("OBASE_POISON_FREED", "1", 1);
         char* object = make(64);
         obase_free(object);
         obase_free(object);
         expect_sound(64);
     },
     1},
    {"after_the_owner_of_what_moved", "was freed before",
     [] {
         char* object = make_moved(64);
         obase::owner<char>::adopt(object).reset();
         obase_free(object);
     },
     1},
    {"twice_in_large", "no object begins there",
     [] {
         char* object = make(100'000);
         char* other = make(100'000);
         obase_free(object);
         obase_free(object);
         require(is_whole(other, 100'000), "its neighbour is as it was");
         expect_sound(100'000, other);
     },
     1},
    {"inside_of_large", "no object begins there",
     [] {
         // Two of one length, with a hole between them that makes the end of the first look like a start.
         char* object = make(5 * 4096);
         char* hole = make(3 * 4096 + 8192);
         char* other = make(5 * 4096);
         obase_free(object + 4096);
         obase_free(object + 4 * 4096); // where its last page begins
         obase_free(object + 8);
         obase_free(hole);
         obase_free(object + 4 * 4096);
         require(is_whole(object, 5 * 4096) && is_whole(other, 5 * 4096), "both are as they were");
         expect_sound(5 * 4096, object);
         obase_free(object);
     },
     4},
    {"twice_after_it_moved", "was freed before",
     [] {
         char* object = make_moved(64);
         obase_free(object);
         obase_free(object);
         expect_sound(64);
     },
     1},
    {"inside_of_what_moved", "no object begins there",
     [] {
         char* object = make_moved(64);
         obase_free(object + 8);
         obase_free(object + 3);
         require(is_whole(object, 64), "the object is as it was");
         obase_free(object);
     },
     2},
    {"not_from_obase", "not from obase",
     [] {
         static char in_static_storage[64];
         char on_the_stack[64] = {};
         char* from_malloc = static_cast<char*>(std::malloc(64));
         obase_free(in_static_storage);
         obase_free(on_the_stack);
         obase_free(from_malloc);
         obase_free(reinterpret_cast<void*>(std::uintptr_t{8}));
         obase_free(reinterpret_cast<void*>(~std::uintptr_t{7}));
         std::free(from_malloc); // still the program's
     },
     5},
    {"twice_of_one_that_found_no_room", "not from obase",
     [] {
         std::vector<char*> others;
         char* object = make_foreign(others);
         obase_free(object + 1);
         obase_free(object);
         obase_free(object);
         for (char* other : others) obase_free(other);
     },
     2, true},
    {"retired_twice", "was freed before",
     [] {
         char* object = make(64);
         obase_retire(object, nullptr);
         obase_retire(object, nullptr);
         obase_retire(make(64), nullptr);
         require(obase_drain(10, nullptr) == 0, "drained");
         expect_sound(64);
     },
     1},
    {"retired_and_not_an_object", "no object begins there",
     [] {
         obase_retire(make(64) + (std::size_t{1} << 29), nullptr);
         require(obase_drain(10, nullptr) == 0, "drained");
     },
     1},
    {"retired_and_not_from_obase", "not from obase",
     [] {
         static char in_static_storage[64];
         obase_retire(in_static_storage, nullptr);
         require(obase_drain(10, nullptr) == 0, "drained");
     },
     1},
};

void PrintTo(const mistake& what, std::ostream* to) { *to << what.name; }

class invalid_free : public ::testing::TestWithParam<mistake> {};

void settings(const mistake& how, const char* checked) {
    setenv("OBASE_CHECK_FREES", checked, 1);
    setenv("OBASE_WINDOW_SECONDS", "100000", 1);
    if (how.small_heaps) setenv("OBASE_HEAP_RESERVE", "64M", 1);
}

TEST_P(invalid_free, is_counted_and_has_no_effect) {
    const auto child = run_in_child([] {
        settings(GetParam(), "0");
        GetParam().make();
        const long now = counted();
        if (now != GetParam().times) std::fprintf(stderr, "counted %ld\n", now);
        return now == GetParam().times ? 0 : 1;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_EQ(child.messages().size(), GetParam().small_heaps ? 2u : 1u) << child.err;
}

TEST_P(invalid_free, ends_the_program_where_frees_are_checked) {
    const auto child = run_in_child([] {
        settings(GetParam(), "1");
        GetParam().make();
        return 0;
    });
    EXPECT_EQ(child.status, 1000 + SIGABRT) << child.err;
    EXPECT_NE(child.err.find("obase: invalid free of 0x"), std::string::npos) << child.err;
    EXPECT_NE(child.err.find(GetParam().words), std::string::npos) << child.err;
}

INSTANTIATE_TEST_SUITE_P(all, invalid_free, ::testing::ValuesIn(mistakes),
                         [](const auto& given) { return std::string(given.param.name); });

// What is right is not counted, nor refused.

void use_rightly() {
    std::vector<char*> objects;
    for (std::size_t round = 0; round < 3; ++round) {
        for (std::size_t bytes = 1; bytes <= 40'000; bytes += bytes / 3 + 1)
            for (int i = 0; i < 20; ++i) objects.push_back(make(bytes));
        for (std::size_t i = round; i < objects.size(); i += 2)
            obase_free(std::exchange(objects[i], nullptr));
        for (char* object : objects) obase_free(object);
        objects.clear();
    }
    // Made by one interface, freed by the other, with a stamp of the C interface's frees in it.
    for (int i = 0; i < 100; ++i) {
        void* old = obase_alloc(sizeof(long[8]), nullptr);
        obase_free(old);
        auto owner = obase::make_managed_with<bool>({.extra_bytes = 63, .alignment = 16});
        void* fresh = owner.get();
        require(i != 0 || fresh == old, "the place is used again");
        (void)owner.release_word();
        obase_free(fresh);
    }
    for (int i = 0; i < 20; ++i) obase_free(make_moved(64));
    obase_retire(make(64), nullptr);
    obase_retire(make(64), [](void* object) { obase_free(object); });
    obase_free(nullptr);
    obase_retire(nullptr, nullptr);
    require(obase_drain(10, nullptr) == 0, "drained");
    expect_sound(64);
}

TEST(valid_frees, are_not_counted) {
    const auto child = run_in_child([] {
        settings({}, "0");
        use_rightly();
        return counted() == 0 ? 0 : 1;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_TRUE(child.messages().empty()) << child.err;
}

TEST(valid_frees, pass_where_they_are_checked) {
    const auto child = run_in_child([] {
        settings({}, "1");
        use_rightly();
        return counted() == 0 ? 0 : 1;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Blocks that other threads had, and that were never written.
TEST(valid_frees, by_threads_that_hand_objects_over) {
    for (const char* checked : {"0", "1"}) {
        const auto child = run_in_child([=] {
            settings({}, checked);
            constexpr std::size_t places = 512;
            static std::atomic<void*> handed[places];
            const auto work = [](unsigned seed) {
                for (unsigned i = 0; i < 30'000; ++i) {
                    seed = seed * 1'664'525 + 1'013'904'223;
                    void* object = obase_alloc(16 + seed % 97, nullptr);
                    obase_free(handed[(seed >> 16) % places].exchange(object));
                }
            };
            std::thread threads[] = {std::thread(work, 1), std::thread(work, 2),
                                     std::thread(work, 3)};
            for (std::thread& thread : threads) thread.join();
            for (auto& place : handed) obase_free(place.exchange(nullptr));
            return counted() == 0 ? 0 : 1;
        });
        EXPECT_EQ(child.status, 0) << child.err;
    }
}

TEST(valid_frees, of_objects_that_the_heaps_had_no_room_for) {
    for (const char* checked : {"0", "1"}) {
        const auto child = run_in_child([=] {
            settings({.name = "", .words = "", .make = nullptr, .times = 0, .small_heaps = true},
                     checked);
            std::vector<char*> others;
            for (int i = 0; i < 100; ++i) others.push_back(make_foreign(others));
            obase_retire(make_foreign(others), nullptr);
            require(obase_drain(10, nullptr) == 0, "drained");
            // A place that malloc uses again.
            for (int i = 0; i < 100; ++i) obase_free(make_foreign(others));
            for (char* other : others) obase_free(other);
            return counted() == 0 ? 0 : 1;
        });
        EXPECT_EQ(child.status, 0) << child.err;
    }
}

TEST(invalid_frees, end_the_program_by_default_in_debug_builds_only) {
    const auto child = run_in_child([] {
        unsetenv("OBASE_CHECK_FREES");
        obase_free(make(64) + 8);
        return 0;
    });
    EXPECT_EQ(child.status, checked_by_default ? 1000 + SIGABRT : 0) << child.err;
}

template <class Protocol>
class owners : public ::testing::Test {};
using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(owners, protocols);

template <class Body>
void expect_end(const char* words, Body&& body) {
    const auto child = run_in_child([&] {
        settings({}, "1");
        body();
        return 0;
    });
    EXPECT_EQ(child.status, 1000 + SIGABRT) << child.err;
    EXPECT_NE(child.err.find(words), std::string::npos) << child.err;
}

TYPED_TEST(owners, of_one_object_end_the_program_where_frees_are_checked) {
    expect_end("was freed before", [] {
        auto one = obase::make_managed<long, TypeParam>(1);
        auto other = obase::owner<long, TypeParam>::adopt(one.get());
    });
}

TYPED_TEST(owners, of_an_object_that_has_moved_away) {
    expect_end("was freed before", [] {
        obase::guide<long, TypeParam> guide = obase::make_managed<long, TypeParam>(1);
        long* before = nullptr;
        for (int window = 0; window < 60; ++window) {
            {
                const obase::basic_scope<TypeParam> s;
                long* now = guide.get();
                if (before == nullptr) before = now;
                if (now != before) break;
            }
            TypeParam::runtime_of().collect_now();
        }
        auto stale = obase::owner<long, TypeParam>::adopt(before);
    });
}

TYPED_TEST(owners, of_something_else) {
    expect_end("not from obase", [] {
        static long in_static_storage = 1;
        auto one = obase::make_managed<long, TypeParam>(1);
        auto other = obase::owner<long, TypeParam>::adopt(&in_static_storage);
    });
}

// The default: an object that malloc gave goes back to it, one that is not obase's stays.
TYPED_TEST(owners, of_something_else_leave_it_where_frees_are_not_checked) {
    const auto child = run_in_child([] {
        settings({}, "0");
        static long in_static_storage = 1;
        auto one = obase::make_managed<long, TypeParam>(1);
        {
            auto other = obase::owner<long, TypeParam>::adopt(&in_static_storage);
        }
        TypeParam::runtime_of().collect_now();
        const std::string seen = TypeParam::runtime_of().statistics().to_json();
        return seen.find("\"invalid_frees\":1,") != std::string::npos ? 0 : 1;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
