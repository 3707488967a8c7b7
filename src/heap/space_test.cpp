// SPDX-License-Identifier: MIT
//
// The space against a simple model: what is live, where, how large, with which bytes.
#include "heap/space.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "heap/quiet.hpp"
#include "heap/sanitized.hpp"
#include "os/process.hpp"
#include "testing/tier.hpp"

namespace obase::heap {
namespace {

constexpr unsigned hot_class = 1;

struct destroyer {
    void operator()(space* s) const { space::destroy(s); }
};
using owned_space = std::unique_ptr<space, destroyer>;

owned_space make_space(const space_options& options = {}) {
    std::string why;
    owned_space made(space::create(options, &why));
    EXPECT_NE(made, nullptr) << why;
    return made;
}

constexpr std::size_t mib = 1U << 20;

// Objects a test holds, by address. Contents are a pattern of the object's own seed.
class model {
  public:
    struct object {
        std::size_t size;
        attributes attr;
        unsigned cls;
        std::uint32_t seed;
    };

    explicit model(space& s) : space_(s) {}

    void add(void* address, std::size_t size, attributes attr, unsigned cls) {
        char* const begin = static_cast<char*>(address);
        const auto after = objects_.lower_bound(begin);
        RC_ASSERT(after == objects_.end() || begin + size <= after->first);
        if (after != objects_.begin()) {
            const auto before = std::prev(after);
            RC_ASSERT(before->first + before->second.size <= begin);
        }
        RC_ASSERT(reinterpret_cast<std::uintptr_t>(address) %
                      (std::size_t{1} << attr.log2_alignment) ==
                  0U);
        RC_ASSERT(space_.contains(address));
        RC_ASSERT(space_.class_of(address) == cls);
        const object made{size, attr, cls, ++seeds_};
        fill(begin, made);
        objects_.emplace(begin, made);
    }
    void check(const std::pair<char* const, object>& entry) const {
        const object& o = entry.second;
        RC_ASSERT(space_.usable_size(entry.first) == o.size);
        const space::object_info info = space_.info(entry.first);
        RC_ASSERT(info.size == o.size);
        RC_ASSERT(info.attr == o.attr);
        std::vector<char> expected(o.size);
        fill(expected.data(), o);
        RC_ASSERT(std::memcmp(expected.data(), entry.first, o.size) == 0);
    }
    void check_all() const {
        for (const auto& entry : objects_) check(entry);
        for (unsigned cls = 0; cls <= space_.classes(); ++cls) {
            std::size_t count = 0;
            std::size_t bytes = 0;
            std::size_t most = 0; // where all blocks are borrowed
            for (const auto& [address, o] : objects_) {
                if (o.cls != cls) continue;
                ++count;
                const bool block = cls == new_class;
                const unsigned index = block ? size_class(o.size) : 0;
                bytes += block ? class_block_size(index) : o.size;
                most += block ? class_block_size(slab_detail::lender_of(index)) : o.size;
            }
            const auto counted = space_.counters(cls);
            RC_ASSERT(counted.live_objects == count);
            RC_ASSERT(counted.live_bytes >= bytes && counted.live_bytes <= most);
            RC_ASSERT(counted.extent_bytes >= counted.live_bytes);
        }
        std::string what;
        const bool valid = space_.validate(&what);
        if (!valid) RC_FAIL(what);
    }
    bool empty() const { return objects_.empty(); }
    std::pair<char* const, object> pick(std::uint32_t number) const {
        auto at = objects_.begin();
        std::advance(at, number % objects_.size());
        return *at;
    }
    void remove(char* address) { objects_.erase(address); }
    const std::map<char*, object>& objects() const { return objects_; }

  private:
    static void fill(char* to, const object& o) {
        std::minstd_rand random(o.seed);
        for (std::size_t i = 0; i < o.size; i += 1 + o.size / 256) {
            to[i] = static_cast<char>(random());
        }
    }

    space& space_;
    std::map<char*, object> objects_;
    std::uint32_t seeds_ = 0;
};

std::size_t any_size() {
    return *rc::gen::weightedOneOf<std::size_t>(
        {{8, rc::gen::inRange<std::size_t>(0, 300)},
         {4, rc::gen::inRange<std::size_t>(300, max_small_size + 1)},
         {2, rc::gen::inRange<std::size_t>(max_small_size + 1, 300'000)}});
}

attributes any_attributes() {
    return {static_cast<std::uint8_t>(*rc::gen::weightedOneOf<int>(
                {{4, rc::gen::just(3)}, {2, rc::gen::just(4)}, {2, rc::gen::inRange(3, 13)}})),
            *rc::gen::weightedElement<bool>({{5, false}, {1, true}})};
}

// Any sequence of operations: objects keep their bytes, never overlap, have exactly the size and
// alignment asked for, and the counters say what the model says.
void behaves_like_the_model(const space_options& options) {
    const owned_space owner = make_space(options);
    space& s = *owner;
    model objects(s);
    const int steps = *rc::gen::inRange(1, 400);
    for (int step = 0; step < steps; ++step) {
        const int what = *rc::gen::inRange(0, 100);
        if (what < 40) {
            const std::size_t size = any_size();
            const attributes attr = any_attributes();
            void* const p = s.allocate(size, attr);
            RC_ASSERT(static_cast<bool>(p));
            const std::size_t rounded = object_size(size, attr);
            std::memset(p, 0, rounded);
            objects.add(p, rounded, attr, rounded > max_small_size ? s.large_class() : new_class);
        } else if (what < 60 && !objects.empty()) {
            const auto victim = objects.pick(*rc::gen::arbitrary<std::uint32_t>());
            objects.check(victim);
            objects.remove(victim.first);
            s.free(victim.first);
        } else if (what < 65 && !objects.empty()) {
            const auto of = objects.pick(*rc::gen::arbitrary<std::uint32_t>());
            const std::size_t rounded = object_size(any_size(), of.second.attr);
            const bool may = of.second.cls == s.large_class() && rounded > max_small_size;
            const std::vector<char> before(of.first, of.first + of.second.size);
            const bool done = s.resize_large(of.first, rounded);
            RC_ASSERT(!done || may);
            RC_ASSERT(done || !may || rounded > of.second.size);
            if (done) {
                RC_ASSERT(std::memcmp(before.data(), of.first, std::min(before.size(), rounded)) ==
                          0);
                std::memset(of.first, 0, rounded);
                objects.remove(of.first);
                objects.add(of.first, rounded, of.second.attr, of.second.cls);
            }
        } else if (what < 90 && !objects.empty()) {
            // Move an object, or give up at the end.
            const auto source = objects.pick(*rc::gen::arbitrary<std::uint32_t>());
            const auto cls = *rc::gen::inRange<unsigned>(1, s.classes());
            void* const to = s.allocate_dense(cls, source.second.size, source.second.attr);
            RC_ASSERT(static_cast<bool>(to));
            if (*rc::gen::weightedElement<bool>({{1, true}, {3, false}})) {
                s.undo_allocate_dense(to);
            } else {
                std::memset(to, 0, source.second.size);
                objects.add(to, source.second.size, source.second.attr, cls);
                objects.check(source);
                objects.remove(source.first);
                s.free(source.first);
            }
        } else if (what < 94) {
            const auto cls = *rc::gen::inRange<unsigned>(1, s.classes());
            const std::size_t marked = s.select_evacuation(cls, 0.5, mib).live_bytes;
            RC_ASSERT(marked <= mib);
            std::size_t seen = 0;
            std::vector<std::pair<char*, model::object>> moving;
            for (const auto& entry : objects.objects()) {
                if (!s.evacuating(entry.first)) continue;
                RC_ASSERT(entry.second.cls == cls);
                seen += entry.second.size;
                moving.push_back(entry);
            }
            RC_ASSERT(seen == marked);
            for (const auto& [from, o] : moving) {
                void* const to = s.allocate_dense(cls, o.size, o.attr);
                RC_ASSERT(static_cast<bool>(to));
                RC_ASSERT(!s.evacuating(to));
                std::memset(to, 0, o.size);
                objects.add(to, o.size, o.attr, cls);
                objects.remove(from);
                s.free(from);
            }
        } else if (what < 97) {
            s.decommit_free_memory();
        } else {
            objects.check_all();
        }
    }
    objects.check_all();
    for (const auto& entry : objects.objects()) s.free(entry.first);
    s.decommit_free_memory();
    for (unsigned cls = 0; cls <= s.classes(); ++cls) {
        RC_ASSERT(s.counters(cls).live_objects == 0U);
        RC_ASSERT(s.counters(cls).live_bytes == 0U);
    }
    RC_ASSERT(s.validate(nullptr));
}

RC_GTEST_PROP(space, behaves_like_the_model, ()) {
    behaves_like_the_model(
        {.classes = *rc::gen::inRange<unsigned>(2, 6), .range_bytes = 256 * mib});
}

RC_GTEST_PROP(space, behaves_like_the_model_with_poison_and_a_file, ()) {
    behaves_like_the_model(
        {.range_bytes = 256 * mib, .poison_freed = true, .cold_directory = "/tmp"});
}

TEST(space, default_options_give_large_ranges) {
    const owned_space s = make_space();
    EXPECT_GE(s->range_bytes(), 64 * mib);
    EXPECT_EQ(s->classes(), 3U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->range_begin(0)) % (64 * mib), 0U);
    for (unsigned cls = 0; cls <= s->large_class(); ++cls) {
        EXPECT_EQ(s->class_of(s->range_begin(cls)), cls);
        EXPECT_EQ(s->class_of(s->range_begin(cls) + s->range_bytes() - 1), cls);
    }
    int local = 0;
    EXPECT_FALSE(s->contains(&local));
    EXPECT_FALSE(s->contains(nullptr));
    EXPECT_EQ(s->class_of(s->range_begin(s->near_class())), s->near_class());
    EXPECT_FALSE(s->contains(s->range_begin(s->near_class()) + s->range_bytes()));
    s->free(nullptr);
}

TEST(space, refuses_options_that_make_no_sense) {
    std::string why;
    EXPECT_EQ(space::create({.classes = 1}, &why), nullptr);
    EXPECT_NE(why.find("2 to 15"), std::string::npos);
    EXPECT_EQ(space::create({.classes = 16}, &why), nullptr);
    EXPECT_EQ(space::create({.classes = 2, .cold_directory = "/tmp"}, &why), nullptr);
    EXPECT_EQ(space::create({.range_bytes = mib, .cold_directory = "/nowhere/at/all"}, &why),
              nullptr);
    EXPECT_NE(why.find("/nowhere/at/all"), std::string::npos) << why;
}

TEST(space, objects_in_dense_classes_lie_in_the_order_they_came) {
    const owned_space s = make_space({.range_bytes = 16 * mib});
    char* last = nullptr;
    for (int i = 0; i < 5000; ++i) {
        char* const p = static_cast<char*>(s->allocate_dense(hot_class, 56, {}));
        ASSERT_NE(p, nullptr);
        if (last != nullptr && (p - s->range_begin(hot_class)) % std::ptrdiff_t{run_bytes} != 0) {
            ASSERT_EQ(p, last + 56);
        }
        ASSERT_GT(p, last);
        last = p;
    }
    int extents = 0;
    s->for_each_extent(hot_class, [&](char* begin, char* end) {
        ++extents;
        EXPECT_EQ(begin, s->range_begin(hot_class));
        EXPECT_GT(end, last);
        EXPECT_LT(end, last + 2 * os::page_size);
    });
    EXPECT_EQ(extents, 1);
}

// Undo of the last object, then a larger one in its place, then sizes of all neighbours.
TEST(space, undo_leaves_no_stale_beginnings) {
    const owned_space s = make_space({.range_bytes = 16 * mib});
    void* const a = s->allocate_dense(hot_class, 64, {});
    void* const b = s->allocate_dense(hot_class, 16, {});
    void* const c = s->allocate_dense(hot_class, 24, {});
    s->undo_allocate_dense(c);
    s->undo_allocate_dense(b);
    EXPECT_EQ(s->usable_size(a), 64U);
    void* const d = s->allocate_dense(hot_class, 200, {});
    EXPECT_EQ(d, b);
    EXPECT_EQ(s->usable_size(d), 200U);
    EXPECT_EQ(s->info(c).size, 0U) << "no object begins inside another";
    EXPECT_EQ(s->usable_size(a), 64U);
    EXPECT_EQ(s->counters(hot_class).live_bytes, 264U);
    EXPECT_TRUE(s->validate(nullptr));
}

TEST(space, lowest_free_run_is_filled_first) {
    const owned_space s = make_space({.range_bytes = 16 * mib});
    std::vector<char*> objects;
    for (int i = 0; i < 64; ++i) {
        objects.push_back(static_cast<char*>(s->allocate_dense(hot_class, 16384, {})));
    }
    for (std::size_t i = 8; i < 24; ++i) s->free(objects[i]); // runs 2 to 5
    EXPECT_EQ(s->decommit_free_memory(), 4 * run_bytes);
    EXPECT_EQ(os::resident_in(s->range_begin(hot_class) + 2 * run_bytes, 4 * run_bytes), 0U);
    void* next = nullptr;
    for (int i = 0; i < 4; ++i) next = s->allocate_dense(hot_class, 16384, {});
    EXPECT_EQ(next, s->range_begin(hot_class) + 2 * run_bytes + 3 * 16384)
        << "the open run was full, so the lowest free one came next";
    EXPECT_TRUE(s->validate(nullptr));
}

TEST(space, large_objects_reuse_and_join_free_neighbours) {
    const owned_space s = make_space({.range_bytes = 64 * mib});
    void* const a = s->allocate(100'000, {});
    void* const b = s->allocate(20'000, {12, true});
    void* const c = s->allocate(50'000, {});
    EXPECT_EQ(s->usable_size(a), 100'096U);
    EXPECT_EQ(s->usable_size(b), 20'480U);
    EXPECT_TRUE(s->info(b).attr.never_cold);
    EXPECT_EQ(s->counters(s->large_class()).live_objects, 3U);
    std::size_t seen = 0;
    s->for_each_large([&](char*, std::size_t bytes, attributes) { seen += bytes; });
    EXPECT_EQ(seen, 100'096U + 20'480U + 50'048U);
    std::memset(a, 1, 100'000);
    s->free(a);
    s->free(b);
    EXPECT_TRUE(s->validate(nullptr));
    EXPECT_GE(s->decommit_free_memory(), 120'000U);
    EXPECT_EQ(s->allocate(122'000, {}), a) << "both holes are one";
    s->free(c);
    EXPECT_EQ(s->allocate(65 * mib, {}), nullptr);
    EXPECT_EQ(s->allocate(SIZE_MAX, {}), nullptr);
    EXPECT_EQ(s->allocate(SIZE_MAX - 4096, {12, false}), nullptr);
    EXPECT_EQ(s->failures(), 3U);
    EXPECT_TRUE(s->validate(nullptr));
}

TEST(space, large_objects_change_their_size_where_they_are) {
    const owned_space s = make_space({.range_bytes = 64 * mib});
    auto* const a = static_cast<char*>(s->allocate(100'000, {}));
    std::memset(a, 7, 100'000);
    const auto unharmed = [&](std::size_t bytes) {
        return std::all_of(a, a + bytes, [](char c) { return c == 7; });
    };
    // Into what is free, and beyond what was ever used.
    ASSERT_TRUE(s->resize_large(a, 30 * mib));
    EXPECT_EQ(s->usable_size(a), 30 * mib);
    EXPECT_TRUE(unharmed(100'000));
    std::memset(a, 7, 30 * mib);
    EXPECT_EQ(s->counters(s->large_class()).live_bytes, 30 * mib);
    // Not over a neighbour, nor out of the range.
    auto* const b = static_cast<char*>(s->allocate(20'000, {}));
    EXPECT_EQ(b, a + 30 * mib);
    for (const std::size_t too_much : {30 * mib + 1, 40 * mib, 65 * mib, SIZE_MAX})
        EXPECT_FALSE(s->resize_large(a, too_much));
    EXPECT_FALSE(s->resize_large(b, 35 * mib));
    EXPECT_EQ(s->usable_size(a), 30 * mib);
    EXPECT_TRUE(unharmed(30 * mib));
    EXPECT_TRUE(s->validate(nullptr));
    // What it leaves is free, and goes back.
    ASSERT_TRUE(s->resize_large(a, 50'000));
    EXPECT_EQ(s->usable_size(a), 50'048U);
    EXPECT_TRUE(s->validate(nullptr));
    EXPECT_GE(s->decommit_free_memory(), 29 * mib);
    EXPECT_TRUE(unharmed(50'000));
    char* const c = static_cast<char*>(s->allocate(mib, {}));
    EXPECT_EQ(c, a + 13 * 4096);
    // Within the last page.
    EXPECT_TRUE(s->resize_large(a, 53'248));
    EXPECT_FALSE(s->resize_large(a, 53'249));
    s->free(c);
    EXPECT_TRUE(s->resize_large(a, 53'249));
    EXPECT_TRUE(s->validate(nullptr));
    // Small ones are elsewhere.
    EXPECT_FALSE(s->resize_large(a, max_small_size));
    void* const small = s->allocate(1000, {});
    EXPECT_FALSE(s->resize_large(small, 100'000));
    s->free(a);
    s->free(b);
    s->free(small);
    EXPECT_EQ(s->counters(s->large_class()).live_bytes, 0U);
    EXPECT_TRUE(s->validate(nullptr));
}

// The mover asks for the size of an object that may have been freed meanwhile, and copies as much.
TEST(space, no_large_object_is_found_at_another_ones_last_page) {
    const owned_space s = make_space({.range_bytes = 16 * mib});
    void* const a = s->allocate(20'000, {});
    void* const b = s->allocate(20'000, {});
    ASSERT_EQ(static_cast<char*>(b) - static_cast<char*>(a), 5 * 4096);
    s->free(a);
    s->free(b);
    ASSERT_EQ(s->allocate(6 * 4096, {}), a);
    EXPECT_EQ(s->info(b).size, 0U);
    EXPECT_EQ(s->info(a).size, 6U * 4096);
}

TEST(space, pages_touched_are_counted_once) {
    const owned_space s = make_space({.range_bytes = 64 * mib});
    char* const hot = s->range_begin(hot_class);
    s->mark_touched(hot, 64);
    s->mark_touched(hot + 64, 64);
    s->mark_touched(hot + 4096 - 8, 16); // over a page border
    s->mark_touched(hot + 3 * run_bytes, 8);
    EXPECT_EQ(s->touched_in(hot_class).pages, 3U);
    EXPECT_EQ(s->touched_in(hot_class).bytes, 64U + 64U + 16U + 8U);
    s->mark_touched(s->range_begin(3) + 5000, 200'000);
    EXPECT_EQ(s->touched_in(3).pages, (205'000U - 1) / 4096 - 5000 / 4096 + 1);
    EXPECT_TRUE(s->run_touched(hot + 100));
    EXPECT_FALSE(s->run_touched(hot + run_bytes));
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> runs;
    s->for_each_touched_run(
        hot_class, [&](char* begin, char* end) { runs.emplace_back(begin - hot, end - hot); });
    const std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> expected{
        {0, run_bytes}, {3 * run_bytes, 4 * run_bytes}};
    EXPECT_EQ(runs, expected);
    std::vector<std::pair<std::ptrdiff_t, std::ptrdiff_t>> pages;
    const auto note = [&](char* begin, char* end) { pages.emplace_back(begin - hot, end - hot); };
    s->mark_touched(hot + 4 * run_bytes, 5000); // next to nothing before it
    s->mark_touched(hot + 4 * run_bytes - 8, 8);
    s->mark_touched(hot + 3 * 4096, 8); // one page after the first two
    s->for_each_touched_page(hot_class, note);
    EXPECT_EQ(pages, (decltype(pages){{0, 8192},
                                      {12288, 16384},
                                      {3 * run_bytes, 3 * run_bytes + 4096},
                                      {4 * run_bytes - 4096, 4 * run_bytes + 8192}}));
    s->clear_touched();
    pages.clear();
    s->for_each_touched_page(hot_class, note);
    EXPECT_TRUE(pages.empty());
    EXPECT_EQ(s->touched_in(hot_class).pages, 0U);
    EXPECT_FALSE(s->run_touched(hot));
    s->mark_touched(hot, 8);
    EXPECT_EQ(s->touched_in(hot_class).pages, 1U);
}

OBASE_SEES_HIDDEN unsigned char byte_of_freed(const unsigned char* p) { return *p; }

TEST(space, runs_that_are_spared_are_evacuated_when_hardly_anything_lives) {
    const owned_space s = make_space({.range_bytes = 16 * mib});
    std::vector<void*> objects;
    for (std::size_t i = 0; i < 3 * run_bytes / 1024; ++i)
        objects.push_back(s->allocate_dense(hot_class, 1024, {}));
    const auto keep = [&](std::size_t run, std::size_t live) {
        for (std::size_t i = run * 64 + live; i < run * 64 + 64; ++i) s->free(objects[i]);
    };
    keep(0, 40);
    keep(1, 30);
    const auto all = [](std::size_t) { return true; };
    s->select_evacuation(hot_class, .9, mib, run_filter(all));
    EXPECT_FALSE(s->evacuating(objects[0]));
    EXPECT_TRUE(s->evacuating(objects[64])) << "less than half";
    std::size_t first = 0;
    const auto one = [&](std::size_t run) { return run == first; };
    s->select_evacuation(hot_class, .9, mib, run_filter(one));
    EXPECT_FALSE(s->evacuating(objects[0]));
    first = 7;
    s->select_evacuation(hot_class, .9, mib, run_filter(one));
    EXPECT_TRUE(s->evacuating(objects[0]));
}

TEST(space, holes_of_dense_runs_are_bounded_together) {
    const owned_space s = make_space({.range_bytes = 16 * mib});
    std::vector<void*> objects;
    for (std::size_t i = 0; i < 5 * run_bytes / 1024; ++i)
        objects.push_back(s->allocate_dense(hot_class, 1024, {}));
    const std::size_t live[] = {40, 56, 58, 63}; // of 64: .63, .88, .91, .98
    for (std::size_t run = 0; run < 4; ++run)
        for (std::size_t i = run * 64 + live[run]; i < run * 64 + 64; ++i) s->free(objects[i]);
    // 39 KiB of holes.
    heap::evacuation_choice choice;
    const auto chosen = [&](std::size_t holes_kept, run_filter spared = {}) {
        choice = s->select_evacuation(hot_class, .75, mib, spared, holes_kept);
        std::string runs;
        for (std::size_t run = 0; run < 5; ++run)
            if (s->evacuating(objects[run * 64])) runs += std::to_string(run);
        return runs;
    };
    EXPECT_EQ(chosen(mib), "0");
    EXPECT_EQ(chosen(16 << 10), "0");
    EXPECT_EQ(chosen(14 << 10), "01");
    EXPECT_EQ(chosen(8 << 10), "01");
    EXPECT_EQ(chosen(0), "012") << "what is denser gives little for much";
    EXPECT_EQ(choice.live_bytes, std::size_t{40 + 56 + 58} << 10);
    EXPECT_EQ(choice.hole_bytes, std::size_t{39} << 10);
    EXPECT_EQ(choice.spared_hole_bytes, 0u);
    const auto second = [](std::size_t run) { return run == 1; };
    EXPECT_EQ(chosen(8 << 10, run_filter(second)), "0") << "what is elsewhere has no holes";
    EXPECT_EQ(choice.hole_bytes, std::size_t{31} << 10);
    EXPECT_EQ(choice.spared_hole_bytes, std::size_t{8} << 10);
}

TEST(space, freed_objects_are_poisoned_on_request) {
    const owned_space s = make_space({.range_bytes = 16 * mib, .poison_freed = true});
    for (const bool dense : {false, true}) {
        auto* const p = static_cast<unsigned char*>(dense ? s->allocate_dense(hot_class, 128, {})
                                                          : s->allocate(128, {}));
        std::memset(p, 1, 128);
        s->free(p);
        // The first word of a NEW block is the allocator's.
        for (std::size_t i = 8; i < 128; ++i) ASSERT_EQ(byte_of_freed(p + i), poison_byte);
    }
}

// Memory of objects that all went away comes back, also of those that other threads' runs held.
TEST(space, free_memory_goes_back_to_the_system) {
    const owned_space s = make_space({.range_bytes = 256 * mib});
    std::vector<void*> objects;
    for (std::size_t i = 0; i < 64 * mib / 1024; ++i) {
        objects.push_back(s->allocate(1024, {}));
        std::memset(objects.back(), 1, 1024);
    }
    EXPECT_GE(os::resident_in(s->range_begin(new_class), 64 * mib), 64 * mib);
    for (void* p : objects) s->free(p);
    EXPECT_GE(s->decommit_free_memory(), 60 * mib);
    EXPECT_LE(os::resident_in(s->range_begin(new_class), 66 * mib), 4 * mib);
    EXPECT_EQ(s->counters(new_class).live_objects, 0U);
    EXPECT_TRUE(s->validate(nullptr));
}

// What runs that go back knew of their blocks goes with them, and nothing that other runs know.
// Memory that threads take counts once while it is resident, and again after it went back to the system.
TEST(space, counts_the_memory_that_threads_take_anew) {
    const owned_space s = make_space();
    for (const std::size_t size : {std::size_t{1000}, 64 * std::size_t{1024}}) {
        const std::size_t count = 8 * mib / size;
        std::vector<void*> objects;
        const auto take = [&] {
            const std::uint64_t before = s->new_bytes();
            while (objects.size() < count) objects.push_back(s->allocate(size, {}));
            return s->new_bytes() - before;
        };
        const auto give = [&](std::size_t step) {
            for (std::size_t i = 0; i < objects.size(); ++i)
                if (i % step != 1) s->free(std::exchange(objects[i], nullptr));
            std::erase(objects, nullptr);
        };
        const std::uint64_t first = take();
        EXPECT_GE(first, count * size) << size;
        EXPECT_LE(first, count * size + count * size / 8 + mib) << size;
        give(~std::size_t{0});
        EXPECT_LE(take(), mib / 8) << "the same memory, " << size;
        give(~std::size_t{0});
        s->decommit_free_memory();
        const std::uint64_t again = take();
        EXPECT_GE(again, 7 * mib) << size;
        EXPECT_LE(again, first + mib) << size;
        give(~std::size_t{0});
    }
}

TEST(space, sizes_survive_the_return_of_runs_beside_them) {
    const owned_space s = make_space();
    std::vector<char*> objects;
    constexpr std::size_t size = 1032; // less than its block
    for (int i = 0; i < 40'000; ++i) objects.push_back(static_cast<char*>(s->allocate(size, {})));
    std::sort(objects.begin(), objects.end());
    std::mt19937 random(1);
    for (std::size_t at = 0; at < objects.size();) { // stretches of all lengths, in turns
        const std::size_t end = std::min(objects.size(), at + random() % 3000);
        for (const bool keep = random() % 2 == 0; at < end; ++at)
            if (!keep) s->free(std::exchange(objects[at], nullptr));
    }
    EXPECT_GT(s->decommit_free_memory(), mib);
    for (char* object : objects) {
        if (object != nullptr) {
            ASSERT_EQ(s->usable_size(object), size);
        }
    }
    for (char*& object : objects)
        if (object == nullptr) object = static_cast<char*>(s->allocate(size - 8, {}));
    std::size_t smaller = 0;
    for (char* object : objects) smaller += s->usable_size(object) == size - 8;
    EXPECT_GT(smaller, 0u);
    for (char* object : objects) {
        ASSERT_GE(s->usable_size(object), size - 8);
        s->free(object);
    }
}

// Few free places wait in full runs: three blocks of each, freed by another thread, are enough for
// the next allocations.
TEST(space, places_that_another_thread_freed_are_filled_again) {
    constexpr std::size_t size = 1032; // 60 to a run
    const owned_space s = make_space();
    std::vector<void*> objects;
    for (int i = 0; i < 60 * 200; ++i) objects.push_back(s->allocate(size, {}));
    std::sort(objects.begin(), objects.end());
    const std::uint64_t extent = s->counters(new_class).extent_bytes;
    std::size_t freed = 0;
    std::thread([&] {
        for (std::size_t i = 0; i < objects.size(); i += 20, ++freed)
            s->free(std::exchange(objects[i], nullptr));
    }).join();
    for (; freed > 0; --freed) ASSERT_NE(s->allocate(size, {}), nullptr);
    EXPECT_EQ(s->counters(new_class).extent_bytes, extent);
}

// Objects are replaced at random, and the old ones freed a thousand at a time, as retire() does. What
// the runs then hold for nothing decides the page utilization of NEW under updates.
TEST(space, replacement_at_random_leaves_few_places_free) {
    for (const std::size_t size : {64U, 1032U, 2048U}) {
        const owned_space s = make_space();
        std::vector<void*> objects(32 * mib / size), retired;
        for (void*& object : objects) object = s->allocate(size, {});
        std::minstd_rand random(1);
        for (std::size_t i = 0; i < 4 * objects.size(); ++i) {
            retired.push_back(
                std::exchange(objects[random() % objects.size()], s->allocate(size, {})));
            if (retired.size() < 1024) continue;
            for (void* object : retired) s->free(object);
            retired.clear();
        }
        const auto counted = s->counters(new_class);
        const double full =
            static_cast<double>(counted.live_bytes) / static_cast<double>(counted.extent_bytes);
        EXPECT_GT(full, 0.9) << size; // of blocks; with a threshold of a quarter .83 to .87
    }
}

std::vector<std::size_t> sizes_of_all_classes() {
    std::vector<std::size_t> sizes;
    for (unsigned index = 0; index < size_classes; ++index)
        sizes.push_back(index == 0 ? granule : class_block_size(index - 1) + granule);
    return sizes;
}

// A thread that wants an object or two of each size between two looks of the collector has no run for each.
TEST(space, sizes_that_little_is_asked_for_share_runs) {
    const owned_space s = make_space();
    const auto fill_all = [&](std::vector<char*>& objects, attributes attr) {
        for (const std::size_t size : sizes_of_all_classes()) {
            auto* const p = static_cast<char*>(s->allocate(size, attr));
            std::memset(p, static_cast<int>(objects.size() % 251), s->usable_size(p));
            objects.push_back(p);
        }
    };
    std::vector<char*> objects;
    fill_all(objects, {});
    // Before there is a collector, as ever: it could not give back what is borrowed.
    EXPECT_EQ(s->counters(new_class).extent_bytes, size_classes * run_bytes);
    for (char* p : objects) s->free(p);
    objects.clear();
    s->decommit_free_memory();
    const std::uint64_t before = s->counters(new_class).extent_bytes;

    // Another thread, with lists of its own.
    std::thread([&] {
        fill_all(objects, {});
        // 48 classes up to 512 bytes, 20 that lend, and some that need a second run for their eight.
        EXPECT_LE(s->counters(new_class).extent_bytes - before, 75 * run_bytes);
        std::size_t i = 0;
        for (const std::size_t size : sizes_of_all_classes()) {
            char* const p = objects[i];
            ASSERT_EQ(s->usable_size(p), size);
            for (std::size_t at = 0; at < size; ++at)
                ASSERT_EQ(static_cast<unsigned char>(p[at]), i % 251) << size;
            ++i;
        }
        for (char* p : objects) s->free(p);
        objects.clear();
        // Alignments are kept, whatever is borrowed.
        for (unsigned log2 = 3; log2 <= 12; ++log2) {
            fill_all(objects, {.log2_alignment = static_cast<std::uint8_t>(log2)});
            for (char* p : objects) {
                ASSERT_EQ(reinterpret_cast<std::uintptr_t>(p) % (std::size_t{1} << log2), 0u);
                s->free(p);
            }
            objects.clear();
        }
    }).join();
    EXPECT_TRUE(s->validate(nullptr));
}

// What much is asked for lies in runs of its own size, and wastes as little as ever.
TEST(space, a_size_that_much_is_asked_for_borrows_little) {
    const owned_space s = make_space();
    s->decommit_free_memory();
    constexpr std::size_t size = 1032,
                          count = 4000; // blocks of 1,056, and of 1,280 where they are borrowed
    for (std::size_t i = 0; i < count; ++i) ASSERT_NE(s->allocate(size, {}), nullptr);
    const auto counted = s->counters(new_class);
    EXPECT_LE(counted.live_bytes, count * 1056 + 31 * (1280 - 1056));
    EXPECT_LE(counted.extent_bytes, (count / (run_bytes / 1056) + 3) * run_bytes);
}

// The runs of sizes that are not asked for any more go back while the thread does other things.
TEST(space, runs_of_quiet_sizes_go_back) {
    const owned_space s = make_space();
    std::vector<void*> kept;
    // An object of each size stays, of a run.
    for (const std::size_t size : sizes_of_all_classes()) {
        std::vector<void*> full(run_bytes / class_block_size(size_class(size)));
        for (void*& p : full) p = s->allocate(size, {});
        kept.push_back(full.back());
        full.pop_back();
        for (void* p : full) s->free(p);
    }
    EXPECT_GE(s->counters(new_class).extent_bytes, size_classes * run_bytes);
    for (int window = 0; window < 8; ++window) {
        // Blocks of 128 bytes, more than the thread keeps at hand: its slow paths.
        std::vector<void*> some(4096);
        for (void*& p : some) p = s->allocate(128, {});
        for (void* p : some) s->free(p);
        s->decommit_free_memory();
    }
    // An object keeps its page or pages, and where little is free all of them.
    EXPECT_LE(s->counters(new_class).extent_bytes, size_classes * run_bytes / 3);
    EXPECT_TRUE(s->validate(nullptr));
    for (void* p : kept) s->free(p);
}

// N objects of 64 bytes, densely filled: resident memory over N x 72 bytes, the 8 being the word
// that points at each. The target of the whole runtime is 6 %; the heap's part must leave room for
// SODA.
TEST(space, overhead_of_small_dense_objects) {
    const std::size_t count = testing::scaled(1'000'000, 10'000'000, 10'000'000);
    const owned_space s = make_space({.range_bytes = 1024 * mib});
    const std::uint64_t before = os::resident_bytes();
    for (std::size_t i = 0; i < count; ++i) {
        void* const p = s->allocate_dense(hot_class, 64, {});
        ASSERT_NE(p, nullptr);
        std::memset(p, 1, 64);
    }
    const auto heap_bytes = static_cast<double>(os::resident_bytes() - before);
    const auto words = static_cast<double>(count) * 8;
    const double overhead = (heap_bytes + words) / (static_cast<double>(count) * 72) - 1;
    RecordProperty("overhead_64B_heap_only", std::to_string(overhead));
    std::printf("overhead of %zu objects of 64 B, heap only: %.2f %%\n", count, overhead * 100);
    if (sanitized) GTEST_SKIP() << "the shadow is resident too";
    EXPECT_LE(overhead, 0.03);
    EXPECT_GE(overhead, 0.0);
}

// Property: a run that is filled again knows nothing of what began in it before.
TEST(space, dense_runs_are_used_again_with_other_sizes) {
    const owned_space s = make_space({.range_bytes = 16 * mib});
    heap::pacer goes_on;
    for (const std::size_t size : {512U, 1032U, 64U, 520U, 48U, 2000U}) {
        std::vector<void*> objects;
        for (std::size_t bytes = 0; bytes < 3 * heap::run_bytes; bytes += size)
            objects.push_back(s->allocate_dense(hot_class, size, {}));
        for (void* const o : objects) ASSERT_EQ(s->info(o).size, size);
        for (void* const o : objects) s->free(o);
        s->decommit_free_memory(goes_on);
        ASSERT_TRUE(s->validate(nullptr));
    }
    EXPECT_LE(s->runs_of(hot_class), 12U) << "the same runs";
}

// Where values of 1 KiB begin is known for less than a hundredth of their bytes: what is cold and on a disk would
// else keep that in memory.
TEST(space, overhead_of_middle_dense_objects) {
    constexpr std::size_t count = 48'000, size = 1032;
    const owned_space s = make_space({.range_bytes = 128 * mib});
    const std::uint64_t before = os::resident_bytes();
    for (std::size_t i = 0; i < count; ++i) {
        void* const p = s->allocate_dense(hot_class, size, {});
        ASSERT_NE(p, nullptr);
        std::memset(p, 1, size);
    }
    const double overhead =
        static_cast<double>(os::resident_bytes() - before) / static_cast<double>(count * size) - 1;
    if (sanitized) GTEST_SKIP() << "the shadow is resident too";
    EXPECT_LE(overhead, 0.012); // of which .0076 are left at the ends of runs
    EXPECT_GE(overhead, 0.0);
}

// Property: the static fast paths lead to the space that was given the slot, and to no other. What a space does
// to each object that is freed is never left out.
TEST(named_space, has_the_static_fast_paths) {
    using space = heap::space;
    EXPECT_EQ(space::allocate_at_hand<1>(64), nullptr);
    if (!asan::present()) { // else every space hides what is freed
        const owned_space s = make_space({.range_bytes = mib, .thread_slot = 1});
        EXPECT_EQ(space::allocate_at_hand<1>(64), nullptr) << "the thread has no block yet";
        void* const object = s->allocate(64, {});
        EXPECT_FALSE(space::free_at_hand<0>(object));
        ASSERT_TRUE(space::free_at_hand<1>(object));
        EXPECT_EQ(space::allocate_at_hand<1>(64), object);
        EXPECT_EQ(s->counters(0).live_objects, 1U);
        s->free(s->allocate(200, {}));
        void* const other = space::allocate_at_hand<1>(197);
        ASSERT_NE(other, nullptr);
        EXPECT_EQ(s->usable_size(other), 200U);
        for (const std::size_t size : {max_small_size + 1, SIZE_MAX, SIZE_MAX - 6})
            EXPECT_EQ(space::allocate_at_hand<1>(size), nullptr);
        int local = 0;
        EXPECT_FALSE(space::free_at_hand<1>(&local));
        EXPECT_FALSE(space::free_at_hand<1>(nullptr));
        EXPECT_FALSE(space::free_at_hand<1>(s->allocate_dense(hot_class, 64, {})));
    }
    for (const bool poison : {true, false}) {
        const owned_space s = make_space(
            {.range_bytes = mib, .poison_freed = poison, .check_frees = !poison, .thread_slot = 1});
        void* const object = s->allocate(64, {});
        EXPECT_FALSE(space::free_at_hand<1>(object));
        s->free(object);
        EXPECT_EQ(space::allocate_at_hand<1>(64), nullptr);
    }
}

} // namespace
} // namespace obase::heap
