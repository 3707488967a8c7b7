// SPDX-License-Identifier: MIT
//
// near_heap: members of a group share pages, objects keep their bytes, and the heap against a simple model of
// what is live, where, how large, and in which group.
#include "heap/near.hpp"
#include "heap/space.hpp"

#include "heap/sanitized.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "testing/tier.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace obase::heap {
namespace {

using native = os::native_platform;
using name_word = native::atomic<group_name>;

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr unsigned usual = near_set({}, expectation::nothing);

class near_world {
  public:
    explicit near_world(std::size_t bytes = 256 * mib, poisoning how = poisoning_here(false))
        : bytes_(bytes), how_(how) {
        base_ = static_cast<char*>(os::reserve(bytes, near_unit_bytes));
        EXPECT_TRUE(base_ != nullptr && heap.create(base_, bytes, how));
    }
    ~near_world() {
        heap.destroy();
        os::release(base_, bytes_);
    }
    near_world(const near_world&) = delete;
    near_world& operator=(const near_world&) = delete;

    void* begin(std::size_t size, unsigned set = usual, group_name* name = nullptr) {
        return shown(heap.begin_group(size, set, name), size);
    }
    // As the space does.
    void* join(const void* neighbour, std::size_t size, unsigned set = usual) {
        const unsigned attributes_set = set % attribute_sets;
        if (!hides(how_) && attributes_at(attributes_set).log2_alignment <= 3)
            if (void* const made = heap.join_at_hand(neighbour, size, attributes_set)) return made;
        return shown(heap.join(neighbour, size, set), size);
    }
    void* join(name_word& name, std::size_t size, unsigned set = usual) {
        return shown(heap.join(name, size, set), size);
    }
    std::string broken() const {
        const char* const what = heap.validate();
        return what != nullptr ? what : "";
    }
    char* base() const { return base_; }
    std::size_t page_of(const void* object) const {
        return static_cast<std::size_t>(static_cast<const char*>(object) - base_) / os::page_size;
    }

    near_heap<native> heap;

  private:
    void* shown(void* object, std::size_t size) const { // as the space does
        if (object != nullptr && hides(how_)) asan::show(object, size);
        return object;
    }
    std::size_t bytes_;
    poisoning how_;
    char* base_ = nullptr;
};

class groups_of_objects {
  public:
    groups_of_objects(near_world& world, std::size_t groups, std::size_t size)
        : world_(world), members_(groups), size_(size) {}

    void add(std::size_t group) {
        auto& members = members_[group];
        void* const made =
            members.empty() ? world_.begin(size_) : world_.join(members.back(), size_);
        ASSERT_NE(made, nullptr);
        std::memset(made, static_cast<int>(group % 251), size_);
        members.push_back(made);
    }
    void end(std::size_t group, std::size_t member) {
        auto& members = members_[group];
        ASSERT_EQ(world_.heap.free(members[member]), free_result::done);
        members.erase(members.begin() + static_cast<std::ptrdiff_t>(member));
    }
    std::size_t members(std::size_t group) const { return members_[group].size(); }

    double mean_pages() const {
        std::size_t pages = 0;
        for (const auto& members : members_) {
            std::set<std::size_t> of_group;
            for (const void* member : members) of_group.insert(world_.page_of(member));
            pages += of_group.size();
        }
        return static_cast<double>(pages) / static_cast<double>(members_.size());
    }
    // Also that each has the bytes of its group.
    bool overlap() const {
        std::map<const char*, std::size_t> all;
        for (std::size_t group = 0; group < members_.size(); ++group)
            for (const void* member : members_[group]) {
                const auto* const bytes = static_cast<const char*>(member);
                for (std::size_t i = 0; i < size_; ++i)
                    if (static_cast<unsigned char>(bytes[i]) != group % 251) return true;
                if (!all.emplace(bytes, group).second) return true;
            }
        const char* end = nullptr;
        for (const auto& [at, group] : all) {
            if (at < end) return true;
            end = at + size_;
        }
        return false;
    }

  private:
    near_world& world_;
    std::vector<std::vector<void*>> members_;
    std::size_t size_;
};

// Property: 2,000 groups of 40 objects of 48 bytes, allocated in turns, lie on hardly more than a page each; and so
// they do when half of all objects have been freed and allocated again.
TEST(near, members_of_a_group_share_pages) {
    constexpr std::size_t groups = 2'000, members = 40;
    near_world world;
    groups_of_objects all(world, groups, 48);
    for (std::size_t i = 0; i < members; ++i)
        for (std::size_t group = 0; group < groups; ++group) all.add(group);
    EXPECT_LE(all.mean_pages(), 1.6);
    EXPECT_FALSE(all.overlap());
    EXPECT_EQ(world.broken(), "");

    std::minstd_rand random(7);
    for (std::size_t i = 0; i < members / 2; ++i)
        for (std::size_t group = 0; group < groups; ++group)
            all.end(group, random() % all.members(group));
    EXPECT_EQ(world.broken(), "");
    for (std::size_t i = 0; i < members / 2; ++i)
        for (std::size_t group = 0; group < groups; ++group) all.add(group);
    EXPECT_LE(all.mean_pages(), 1.6);
    EXPECT_FALSE(all.overlap());
    EXPECT_EQ(world.broken(), "");
    const near_counters now = world.heap.counters();
    EXPECT_EQ(now.live_objects, groups * members);
    EXPECT_EQ(now.live_bytes, groups * members * 48);
    EXPECT_EQ(now.groups, groups);
}

// Groups of one small object each take hardly more than their chunk, once there are many.
TEST(near, many_small_groups_are_packed) {
    constexpr std::size_t groups = 200'000;
    near_world world;
    for (std::size_t i = 0; i < groups; ++i) ASSERT_NE(world.begin(72), nullptr);
    EXPECT_LE(static_cast<double>(world.heap.counters().extent_bytes),
              1.25 * groups * near_chunk_bytes + 5 * static_cast<double>(mib));
    EXPECT_EQ(world.broken(), "");
}

// So do groups that take more than a fourth of a page.
TEST(near, many_middling_groups_are_packed) {
    constexpr std::size_t groups = 20'000, taken = 9 * near_chunk_bytes;
    near_world world;
    for (std::size_t i = 0; i < groups; ++i) {
        void* const first = world.begin(1008);
        ASSERT_NE(world.join(first, 72), nullptr);
    }
    EXPECT_LE(static_cast<double>(world.heap.counters().extent_bytes),
              1.5 * groups * taken + 5 * static_cast<double>(mib));
    EXPECT_EQ(world.broken(), "");
}

// A group beyond a page has pages of its own, all in one unit while that has room, and no more than it needs.
TEST(near, large_groups_have_pages_of_their_own_in_a_unit) {
    constexpr std::size_t groups = 5, members = 1'000, size = 96;
    near_world world;
    std::vector<std::vector<void*>> all(groups);
    for (std::size_t i = 0; i < members; ++i)
        for (auto& group : all) {
            group.push_back(group.empty() ? world.begin(size) : world.join(group.back(), size));
            ASSERT_NE(group.back(), nullptr);
        }
    for (const auto& group : all) {
        std::set<std::size_t> pages, units;
        for (const void* member : group) {
            pages.insert(world.page_of(member));
            units.insert(world.page_of(member) / near_unit_pages);
        }
        EXPECT_LE(pages.size(), members * size / os::page_size + 3);
        EXPECT_EQ(units.size(), 1u);
    }
    EXPECT_EQ(world.broken(), "");
}

// Also when another unit, which new groups begin in, has pages again.
TEST(near, a_group_stays_in_its_unit) {
    near_world world;
    std::vector<void*> others;
    for (unsigned i = 0; i < near_unit_pages; ++i) others.push_back(world.begin(4096));
    void* last = world.begin(4096);
    const std::size_t unit = world.page_of(last) / near_unit_pages;
    EXPECT_NE(world.page_of(others[0]) / near_unit_pages, unit);
    for (unsigned i = 0; i < near_unit_pages; i += 3) world.heap.free(others[i]);
    for (int i = 0; i < 100; ++i) {
        last = world.join(last, 4096);
        EXPECT_EQ(world.page_of(last) / near_unit_pages, unit);
    }
    EXPECT_EQ(world.page_of(world.begin(4096)) / near_unit_pages, 0u);
    EXPECT_EQ(world.broken(), "");
}

TEST(near, an_object_goes_to_its_neighbour_s_page_while_that_has_room) {
    near_world world;
    std::vector<void*> members{world.begin(512)};
    for (int i = 0; i < 40; ++i) members.push_back(world.join(members.back(), 512));
    for (const std::size_t i : {3U, 12U, 30U}) {
        const std::size_t page = world.page_of(members[i]);
        // On another page than the newest, a place beside the neighbour.
        ASSERT_EQ(world.heap.free(members[i + 1]), free_result::done);
        ASSERT_EQ(world.page_of(members[i + 1]), page);
        members[i + 1] = world.join(members[i], 480);
        EXPECT_EQ(world.page_of(members[i + 1]), page);
        EXPECT_EQ(world.heap.size_of(members[i + 1]), 480u);
    }
    EXPECT_EQ(world.broken(), "");
}

// What one group looks for in vain in a shared page says nothing of the holes of another.
TEST(near, a_search_in_vain_hides_no_holes_of_other_groups) {
    near_world world;
    // One page, half each, both full.
    std::vector<void*> mine{world.begin(504)}, theirs{world.begin(504)};
    while (mine.size() < 4) mine.push_back(world.join(mine.back(), 504));
    while (theirs.size() < 4) theirs.push_back(world.join(theirs.back(), 504));
    const std::size_t page = world.page_of(mine[0]);
    ASSERT_EQ(world.page_of(mine[3]), page);
    ASSERT_EQ(world.page_of(theirs[3]), page);
    // The newest page of both is another one.
    void* const beyond[] = {world.join(mine[0], 2000), world.join(theirs[0], 2000)};
    ASSERT_NE(world.page_of(beyond[0]), page);
    ASSERT_NE(world.page_of(beyond[1]), page);
    ASSERT_EQ(world.heap.free(theirs[1]), free_result::done);
    void* const in_vain = world.join(mine[0], 504);
    EXPECT_NE(world.page_of(in_vain), page) << "no hole of its own";
    void* const found = world.join(theirs[0], 504);
    EXPECT_EQ(world.page_of(found), page) << "the hole is there";
    EXPECT_EQ(world.broken(), "");
}

// Nor does what it looked for in vain once say anything when an object was freed since, whose chunks are still in use.
TEST(near, a_search_in_vain_is_forgotten_when_an_object_is_freed) {
    near_world world;
    std::vector<void*> all{world.begin(104)};
    const std::size_t page = world.page_of(all[0]);
    while (world.page_of(all.back()) == page) all.push_back(world.join(all.back(), 104));
    EXPECT_NE(world.page_of(world.join(all[0], 104)), page) << "it is full";
    ASSERT_EQ(world.heap.free(all[5]), free_result::done);
    EXPECT_EQ(world.join(all[0], 104), all[5]);
    EXPECT_EQ(world.broken(), "");
}

// Chunks that a thread frees go back to others when it frees in another page; it finds them itself at once.
TEST(near, a_place_of_whole_chunks_is_found_again_at_once) {
    near_world world;
    std::vector<void*> all{world.begin(256)};
    const std::size_t page = world.page_of(all[0]);
    while (world.page_of(all.back()) == page) all.push_back(world.join(all.back(), 256));
    EXPECT_NE(world.page_of(world.join(all[0], 256)), page) << "it is full";
    const std::size_t before = world.heap.counters().claimed_bytes;
    for (const std::size_t i : {3U, 4U, 9U}) ASSERT_EQ(world.heap.free(all[i]), free_result::done);
    EXPECT_EQ(world.heap.counters().claimed_bytes, before - 3 * 256);
    EXPECT_EQ(world.broken(), "");
    EXPECT_EQ(world.join(all[0], 512), all[3]);
    EXPECT_EQ(world.join(all[0], 256), all[9]);
    EXPECT_EQ(world.heap.counters().claimed_bytes, before);
    EXPECT_EQ(world.broken(), "");
    // In two pages, in turns.
    std::vector<void*> other{world.begin(256)};
    while (other.size() < 40) other.push_back(world.join(other.back(), 256));
    for (std::size_t i = 10; i < 14; ++i) {
        ASSERT_EQ(world.heap.free(all[i]), free_result::done);
        ASSERT_EQ(world.heap.free(other[i]), free_result::done);
    }
    EXPECT_EQ(world.broken(), "");
    for (std::size_t i = 10; i < 14; ++i) EXPECT_EQ(world.join(all[0], 256), all[i]);
    EXPECT_EQ(world.broken(), "");
}

// A group whose objects are freed in batches, and that grows without neighbours, uses the places again.
TEST(near, holes_of_frees_in_batches_are_filled_by_name) {
    near_world world;
    name_word name;
    std::vector<void*> all;
    for (int i = 0; i < 4'000; ++i) all.push_back(world.join(name, 200));
    std::set<std::size_t> pages;
    for (const void* object : all) pages.insert(world.page_of(object));
    const std::size_t before = world.heap.counters().extent_bytes;
    for (std::size_t i = 0; i < all.size(); i += 2)
        ASSERT_EQ(world.heap.free(all[i]), free_result::done);
    for (std::size_t i = 0; i < all.size(); i += 2) {
        all[i] = world.join(name, 200);
        pages.insert(world.page_of(all[i]));
    }
    EXPECT_LE(world.heap.counters().extent_bytes, before + 4 * os::page_size);
    EXPECT_LE(pages.size() * os::page_size, before + 4 * os::page_size);
    EXPECT_EQ(world.broken(), "");
}

// While a thread has begun no more groups than fit, and all groups end, what it has reserved for others goes back too.
TEST(near, groups_that_follow_each_other_lie_in_a_row) {
    near_world world;
    constexpr std::size_t groups = 100'000;
    std::vector<void*> all;
    for (std::size_t i = 0; i < groups; ++i) all.push_back(world.begin(64));
    EXPECT_LE(static_cast<double>(world.heap.counters().extent_bytes),
              1.25 * groups * near_chunk_bytes + 5 * static_cast<double>(mib));
    EXPECT_EQ(world.broken(), "");
    for (void* const object : all) ASSERT_EQ(world.heap.free(object), free_result::done);
    EXPECT_EQ(world.heap.counters().claimed_bytes, 0u);
    pacer goes_on;
    world.heap.decommit_free_memory(goes_on);
    EXPECT_EQ(world.heap.counters().extent_bytes, 0u);
    EXPECT_EQ(world.broken(), "");
}

// A thread that ended leaves its groups, its numbers and what it reserved to the next one.
TEST(near, groups_outlive_their_threads) {
    near_world world;
    std::vector<void*> all;
    for (int i = 0; i < 20; ++i)
        std::jthread([&] {
            for (int k = 0; k < 100; ++k) all.push_back(world.begin(72));
            void* const beside = world.join(all.back(), 48);
            EXPECT_EQ(world.page_of(beside), world.page_of(all.back()));
            all.push_back(beside);
        }).join();
    EXPECT_EQ(world.broken(), "");
    for (void* const object : all) ASSERT_EQ(world.heap.free(object), free_result::done);
    EXPECT_EQ(world.heap.counters().groups, 0u);
    EXPECT_EQ(world.broken(), "");
}

TEST(near, expectations_share_no_page) {
    near_world world;
    std::map<std::size_t, expectation> kinds;
    std::vector<std::pair<void*, expectation>> made;
    for (int i = 0; i < 3'000; ++i) {
        const auto kind = static_cast<expectation>(i % 4);
        const std::size_t size = 8U * (1 + static_cast<unsigned>(i) % 60);
        const unsigned set = near_set({}, kind);
        void* const object =
            i < 400 ? world.begin(size, set) : world.join(made[made.size() - 400].first, size, set);
        ASSERT_NE(object, nullptr);
        made.emplace_back(object, kind);
        const auto [at, first] = kinds.emplace(world.page_of(object), kind);
        EXPECT_EQ(at->second, kind);
    }
    for (const auto& [object, kind] : made) EXPECT_EQ(world.heap.expected_of(object), kind);
    // A neighbour is a promise, what is expected a guess.
    void* const beside = world.join(made[2].first, 48, near_set({}, expectation::hot));
    EXPECT_EQ(world.heap.expected_of(beside), expectation::cold);
    EXPECT_EQ(world.broken(), "");
}

TEST(near, what_is_no_live_object_has_no_neighbours_and_is_not_freed) {
    near_world world;
    char* const object = static_cast<char*>(world.begin(64));
    char* const other = static_cast<char*>(world.join(object, 64));
    int of_test = 0;
    const void* const bad[] = {nullptr,      &of_test,         object + 8,
                               object + 3,   world.base() - 8, world.base() + 256 * mib,
                               object + 200, object + 64 * mib};
    for (const void* address : bad) {
        EXPECT_EQ(world.join(address, 48), nullptr);
        EXPECT_EQ(world.heap.size_of_racy(address), 0u);
        EXPECT_NE(world.heap.free(const_cast<void*>(address)), free_result::done);
    }
    EXPECT_EQ(world.heap.free(object), free_result::done);
    EXPECT_NE(world.heap.free(object), free_result::done);
    EXPECT_EQ(world.join(object, 48), nullptr);
    EXPECT_NE(world.join(other, 48), nullptr);
    EXPECT_EQ(world.heap.counters().live_objects, 2u);
    EXPECT_EQ(world.broken(), "");
}

// A name outlives its group: the next object begins another one, in which others are found.
TEST(near, a_name_whose_objects_are_gone_is_used_again) {
    near_world world;
    name_word name;
    void* const first = world.join(name, 48);
    const group_name before = name.load_relaxed();
    void* const second = world.join(name, 48);
    EXPECT_EQ(name.load_relaxed(), before);
    EXPECT_EQ(world.page_of(first), world.page_of(second));
    world.heap.free(first);
    world.heap.free(second);
    EXPECT_EQ(world.heap.counters().groups, 0u);
    // Another group gets the number.
    ASSERT_NE(world.begin(48), nullptr);
    void* const third = world.join(name, 48);
    EXPECT_NE(name.load_relaxed(), before);
    void* const fourth = world.join(name, 48);
    EXPECT_EQ(world.page_of(third), world.page_of(fourth));
    EXPECT_EQ(world.heap.counters().groups, 2u);
    // No name of this heap.
    name_word nonsense(0x1234'5678'9ABC'DEF0);
    EXPECT_EQ(world.join(nonsense, 48), nullptr);
    EXPECT_EQ(world.broken(), "");
}

// Everything that a group had goes back when it is empty, and its pages to the system.
TEST(near, empty_groups_give_their_chunks_back) {
    near_world world;
    std::vector<void*> all;
    for (unsigned group = 0; group < 300; ++group) {
        all.push_back(world.begin(104));
        for (unsigned i = 0; i < group; ++i)
            all.push_back(world.join(all.back(), 8U + 8U * (i % 90)));
    }
    EXPECT_GT(world.heap.counters().claimed_bytes, 0u);
    std::minstd_rand random(3);
    std::shuffle(all.begin(), all.end(), random);
    for (void* const object : all) ASSERT_EQ(world.heap.free(object), free_result::done);
    near_counters now = world.heap.counters();
    EXPECT_EQ(now.live_objects, 0u);
    EXPECT_EQ(now.groups, 0u);
    EXPECT_EQ(now.claimed_bytes, 0u);
    EXPECT_EQ(world.broken(), "");
    pacer goes_on;
    EXPECT_EQ(world.heap.decommit_free_memory(goes_on), now.extent_bytes);
    EXPECT_EQ(world.heap.counters().extent_bytes, 0u);
    EXPECT_EQ(world.broken(), "");
    void* const again = world.begin(4096);
    std::memset(again, 1, 4096);
    EXPECT_EQ(world.broken(), "");
}

// Also those of its newest page, which is another group's or nobody's from then on: that the cursor has come to the limit
// there means nothing.
TEST(near, a_group_does_not_grow_in_a_page_in_which_it_has_nothing) {
    constexpr unsigned hot = near_set({}, expectation::hot); // packed from the first group on
    near_world world;
    void* a = nullptr;
    for (int i = 0; i < 4; ++i) a = world.begin(1024, hot); // a page that is full
    void* const b = world.join(a, 1024, hot);               // ends with what the group has claimed
    ASSERT_NE(world.page_of(b), world.page_of(a));
    void* const c = world.begin(1024, hot);
    ASSERT_EQ(world.page_of(c), world.page_of(b));
    ASSERT_EQ(world.heap.free(b), free_result::done);
    EXPECT_EQ(world.broken(), "");
    ASSERT_EQ(world.heap.free(c), free_result::done);
    auto* const d = static_cast<unsigned char*>(world.join(a, 1024, hot));
    EXPECT_EQ(world.broken(), "");
    std::memset(d, 1, 1024);
    pacer goes_on;
    world.heap.decommit_free_memory(goes_on);
    EXPECT_EQ(d[0], 1) << "a live object's page went back";
    EXPECT_EQ(world.broken(), "");
}

TEST(near, without_room_nothing_is_changed) {
    near_world world(near_unit_bytes);
    std::vector<void*> all;
    for (;;) {
        void* const made = all.empty() ? world.begin(4000) : world.join(all.back(), 4000);
        if (made == nullptr) break;
        all.push_back(made);
    }
    EXPECT_EQ(all.size(), near_unit_pages);
    EXPECT_EQ(world.begin(4000), nullptr);
    name_word name;
    EXPECT_EQ(world.join(name, 4000), nullptr);
    EXPECT_EQ(world.heap.counters().groups, 1u);
    EXPECT_EQ(world.broken(), "");
    world.heap.free(all[100]);
    all[100] = world.join(all[0], 4096);
    EXPECT_NE(all[100], nullptr);
    EXPECT_EQ(world.broken(), "");

    near_world none(4096);
    EXPECT_EQ(none.begin(8), nullptr);
    EXPECT_EQ(none.broken(), "");
}

// Property: after any sequence of operations objects have their bytes, sizes, alignments and sets, none overlap,
// and every invariant of the heap holds.
void behaves_like_the_model(poisoning how) {
    struct object {
        std::size_t size;
        unsigned set;
        unsigned seed;
    };
    near_world world(64 * mib, how);
    std::map<char*, object> objects;
    std::vector<name_word> names(6);
    unsigned seeds = 0;
    const auto fill = [](char* to, const object& o) {
        std::minstd_rand random(o.seed);
        for (std::size_t i = 0; i < o.size; ++i) to[i] = static_cast<char>(random());
    };
    const auto check = [&](char* at, const object& o) {
        RC_ASSERT(world.heap.size_of(at) == o.size);
        RC_ASSERT(world.heap.size_of_racy(at) == o.size);
        RC_ASSERT(world.heap.set_of(at) == o.set % attribute_sets);
        std::vector<char> expected(o.size);
        fill(expected.data(), o);
        RC_ASSERT(std::memcmp(expected.data(), at, o.size) == 0);
    };
    const auto any = [&] {
        auto at = objects.begin();
        std::advance(at, *rc::gen::inRange<std::size_t>(0, objects.size()));
        return at;
    };
    const int steps = *rc::gen::inRange(1, 600);
    for (int step = 0; step < steps; ++step) {
        const int what = *rc::gen::inRange(0, 100);
        if (what < 60) {
            attributes attr;
            attr.log2_alignment = static_cast<std::uint8_t>(*rc::gen::weightedOneOf<int>(
                {{6, rc::gen::just(3)}, {2, rc::gen::inRange(3, 13)}}));
            attr.never_cold = *rc::gen::weightedElement<bool>({{8, false}, {1, true}});
            const std::size_t size = std::min(
                max_near_size,
                object_size(*rc::gen::weightedOneOf<std::size_t>(
                                {{8, rc::gen::inRange<std::size_t>(1, 120)},
                                 {2, rc::gen::inRange<std::size_t>(1, max_near_size + 1)}}),
                            attr));
            const unsigned set =
                near_set(attr, static_cast<expectation>(*rc::gen::weightedOneOf<int>(
                                   {{6, rc::gen::just(0)}, {1, rc::gen::inRange(0, 4)}})));
            void* made = nullptr;
            if (what < 10 || objects.empty())
                made = world.begin(size, set);
            else if (what < 45)
                made = world.join(any()->first, size, set);
            else
                made =
                    world.join(names[*rc::gen::inRange<std::size_t>(0, names.size())], size, set);
            RC_ASSERT(static_cast<bool>(made));
            RC_ASSERT(reinterpret_cast<std::uintptr_t>(made) % (1U << attr.log2_alignment) == 0U);
            auto* const begin = static_cast<char*>(made);
            const auto after = objects.lower_bound(begin);
            bool overlaps = after != objects.end() && begin + size > after->first;
            if (after != objects.begin()) {
                const auto before = std::prev(after);
                overlaps = overlaps || before->first + before->second.size > begin;
            }
            RC_ASSERT_FALSE(overlaps);
            const object o{size, set, ++seeds};
            fill(begin, o);
            objects.emplace(begin, o);
        } else if (what < 95) {
            if (objects.empty()) continue;
            const auto victim = any();
            check(victim->first, victim->second);
            RC_ASSERT(world.heap.free(victim->first) == free_result::done);
            RC_ASSERT(world.heap.free(victim->first) != free_result::done);
            objects.erase(victim);
        } else {
            pacer goes_on;
            world.heap.decommit_free_memory(goes_on);
        }
        if (what % 10 != 0) continue;
        RC_ASSERT(world.broken() == "");
        std::size_t bytes = 0;
        for (const auto& [at, o] : objects) bytes += o.size;
        const near_counters now = world.heap.counters();
        RC_ASSERT(now.live_objects == objects.size());
        RC_ASSERT(now.live_bytes == bytes);
    }
    for (const auto& [at, o] : objects) check(at, o);
    RC_ASSERT(world.broken() == "");
}
RC_GTEST_PROP(near_model, any_program, ()) { behaves_like_the_model(poisoning_here(false)); }
RC_GTEST_PROP(near_model, any_program_with_poison, ()) {
    behaves_like_the_model(poisoning_here(true));
}

// Threads grow the same groups and free each other's objects while memory goes back.
TEST(near_threads, groups_are_grown_and_freed_by_all_threads) {
    constexpr unsigned threads = 4, groups = 8;
    near_world world(64 * mib);
    std::vector<name_word> names(groups);
    std::vector<native::atomic<void*>> places(groups * 64);
    const auto rounds = testing::scaled_for_build(40'000, 2'000'000, 20'000'000);
    std::vector<std::jthread> running;
    native::atomic<unsigned> wrong;
    for (unsigned t = 0; t < threads; ++t)
        running.emplace_back([&, t] {
            std::minstd_rand random(t + 1);
            for (std::uint64_t i = 0; i < rounds; ++i) {
                auto& place = places[random() % places.size()];
                const std::size_t size = 8U + 8U * (random() % 40);
                void* const made = world.join(names[random() % groups], size);
                if (made == nullptr) {
                    wrong.fetch_add_relaxed(1);
                    continue;
                }
                std::memset(made, static_cast<int>(size / 8), size);
                void* const before = place.exchange_acq_rel(made);
                if (before == nullptr) continue;
                const std::size_t held = world.heap.size_of(before);
                const auto* const bytes = static_cast<const unsigned char*>(before);
                if (bytes[0] != held / 8 || bytes[held - 1] != held / 8 ||
                    world.heap.free(before) != free_result::done)
                    wrong.fetch_add_relaxed(1);
            }
        });
    running.emplace_back([&] {
        pacer goes_on;
        for (int i = 0; i < 50; ++i) {
            world.heap.decommit_free_memory(goes_on);
            std::this_thread::yield();
        }
    });
    running.clear();
    EXPECT_EQ(wrong.load_relaxed(), 0u);
    EXPECT_EQ(world.broken(), "");
    for (auto& place : places)
        if (void* const object = place.load_relaxed(); object != nullptr) world.heap.free(object);
    EXPECT_EQ(world.heap.counters().groups, 0u);
    EXPECT_EQ(world.broken(), "");
}

// A fork while the collector gives pages back: the child has them.
TEST(near_fork, pages_that_are_going_back_are_the_child_s_too) {
    struct forks final : pacer {
        near_world& world;
        int status = -1;
        explicit forks(near_world& w) : world(w) {}
        void call_begins() noexcept override {
            world.heap.fork_prepare();
            const pid_t child = fork();
            if (child == 0) {
                world.heap.fork_child();
                bool ok = world.broken().empty();
                // All of the only unit can be had.
                for (unsigned i = 0; i < near_unit_pages; ++i)
                    ok = ok && world.begin(4096) != nullptr;
                _exit(ok && world.broken().empty() ? 0 : 1);
            }
            world.heap.fork_parent();
            waitpid(child, &status, 0);
        }
    };
    near_world world(near_unit_bytes);
    std::vector<void*> all;
    for (int i = 0; i < 100; ++i) all.push_back(world.begin(4096));
    for (void* const one : all) world.heap.free(one);
    forks ask(world);
    EXPECT_EQ(world.heap.decommit_free_memory(ask), 100u * os::page_size);
    EXPECT_EQ(ask.status, 0);
    EXPECT_EQ(world.broken(), "");
}

// A thread that was in a section, or looked whether it may go in, when another one forked.
TEST(near_fork, a_child_does_not_wait_for_a_thread_that_is_not_there) {
    if (thread_sanitized) GTEST_SKIP() << "ThreadSanitizer does not follow threads into a child";
    biased_sections<native> sections;
    biased_sections<native>::owner_word owner;
    native::atomic<unsigned> inside, forked;
    std::jthread other([&] {
        owner.store_release(sections.owner_for_caller());
        EXPECT_TRUE(sections.enter(owner));
        inside.store_release(1);
        while (forked.load_acquire() == 0) std::this_thread::yield();
        sections.leave();
    });
    while (inside.load_acquire() == 0) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
        alarm(30); // it waits for ever where it waits at all
        sections.only_caller_is_left();
        sections.share(owner);
        _exit(owner.load_relaxed() == 0 ? 0 : 1);
    }
    forked.store_release(1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

// Property: what NEAR knows of its pages goes back with the last page of a unit, once, and is not asked for meanwhile.
TEST(near, tables_of_units_without_objects_go_back) {
    if (asan::present() || thread_sanitized) GTEST_SKIP() << "the shadow is resident too";
    near_world world(64 * mib);
    std::vector<void*> all;
    const auto fill = [&](std::size_t bytes) {
        for (std::size_t i = 0; i < bytes / 1024; ++i) all.push_back(world.begin(1024));
    };
    const auto free_all = [&] {
        for (void* const one : all) ASSERT_EQ(world.heap.free(one), free_result::done);
        all.clear();
    };
    struct uses : pacer {
        near_world* in = nullptr;
        std::vector<void*>* made = nullptr;
        std::size_t calls = 0;
        void call_begins() noexcept override { ++calls; }
        void call_ends() noexcept override { // a thread that goes on before the collector has
            if (in != nullptr) made->push_back(in->begin(1024));
        }
    };
    const std::uint64_t before = os::resident_bytes();
    for (int turn = 0; turn < 2; ++turn) {
        fill(48 * mib);
        free_all();
        uses ask;
        world.heap.decommit_free_memory(ask);
        // 24 units of 160 KiB, and 32 bytes for each group, which stay.
        EXPECT_LT(os::resident_bytes(), before + 2'600'000) << turn;
        EXPECT_EQ(world.broken(), "");
        const std::size_t calls = ask.calls;
        world.heap.decommit_free_memory(ask);
        EXPECT_EQ(ask.calls, calls);
    }
    // Pages that had been given back before the others of their unit.
    fill(8 * mib);
    for (std::size_t i = 0; i < all.size(); ++i)
        if (i % 1024 < 1000) {
            ASSERT_EQ(world.heap.free(all[i]), free_result::done);
        }
    uses first;
    world.heap.decommit_free_memory(first);
    EXPECT_EQ(world.broken(), "");
    std::vector<void*> rest;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (i % 1024 >= 1000) rest.push_back(all[i]);
    all = rest;
    free_all();
    uses second;
    second.in = &world;
    second.made = &all;
    world.heap.decommit_free_memory(second);
    EXPECT_FALSE(all.empty());
    EXPECT_EQ(world.broken(), "");
    free_all();
    EXPECT_EQ(world.broken(), "");
}

// Regression: a thread that asked for a kind before it had put anything near anything read a table through null.
TEST(near, a_thread_has_nothing_at_hand_at_first) {
    std::string why;
    space* const s = space::create({.range_bytes = 64 * mib}, &why);
    ASSERT_NE(s, nullptr) << why;
    std::jthread([&] {
        space::neighbour found;
        void* const made =
            s->allocate_placed(64, {}, {nullptr, nullptr, expectation::cold}, &found);
        EXPECT_NE(made, nullptr);
        EXPECT_EQ(found, space::neighbour::none);
        EXPECT_EQ(s->expected_of(made), expectation::cold);
        s->free(made);
    }).join();
    space::destroy(s);
}

// Property: groups that a thread begins and goes on with at hand, by a name or by a neighbour, lie together; those of which
// different things are expected on different pages; and what is counted is what is there.
TEST(near, groups_at_hand_are_groups) {
    space* const s = space::create({.range_bytes = 256 * mib}, nullptr);
    ASSERT_NE(s, nullptr);
    constexpr std::size_t groups = 6'000;
    std::vector<void*> all;
    std::size_t bytes = 0, together = 0;
    std::map<std::uintptr_t, expectation> page_has;
    std::string what;
    const auto live = [s] { return s->counters(new_class); };
    for (std::size_t i = 0; i < groups; ++i) {
        group_name name = 0;
        const expectation expect = i % 3 == 0 ? expectation::hot : expectation::nothing;
        const auto make = [&](std::size_t size, const void* near) {
            space::neighbour found;
            void* const made = s->allocate_placed(
                size, {}, {near, near != nullptr ? nullptr : &name, expect}, &found);
            EXPECT_EQ(found, space::neighbour::found);
            EXPECT_EQ(s->usable_size(made), size);
            EXPECT_EQ(s->expected_of(made), expect);
            all.push_back(made);
            bytes += size;
            const auto page = reinterpret_cast<std::uintptr_t>(made) / os::page_size;
            EXPECT_EQ(page_has.emplace(page, expect).first->second, expect);
            return page;
        };
        const auto first = make(96, nullptr);
        const auto second = make(40, nullptr), third = make(64, all.back());
        together += first == second && second == third;
    }
    EXPECT_GE(together, groups * 95 / 100);
    // An expectation that is none of the four is none, of a group or of an object alone.
    for (unsigned value = 4; value < 256; value += 7) {
        group_name name = 0;
        space::neighbour found;
        for (group_name* const in : {&name, static_cast<group_name*>(nullptr)}) {
            void* const made = s->allocate_placed(
                64, {}, {nullptr, in, static_cast<expectation>(value), in == nullptr}, &found);
            EXPECT_EQ(s->expected_of(made), expectation::nothing);
            all.push_back(made);
            bytes += 64;
        }
    }
    EXPECT_TRUE(s->validate(&what)) << what;
    EXPECT_EQ(live().live_objects, all.size());
    EXPECT_EQ(live().live_bytes, bytes);
    EXPECT_TRUE(s->validate(&what)) << what;
    for (std::size_t i = 0; i < all.size(); i += 2) s->free(all[i]);
    EXPECT_EQ(live().live_objects, all.size() / 2);
    EXPECT_TRUE(s->validate(&what)) << what;
    for (std::size_t i = 1; i < all.size(); i += 2) s->free(all[i]);
    EXPECT_EQ(live().live_objects, 0u);
    EXPECT_EQ(live().live_bytes, 0u);
    EXPECT_TRUE(s->validate(&what)) << what;
    space::destroy(s);
}

// What a thread has at hand is no neighbour any more once it is freed, and what comes there next may be another group's.
TEST(near, what_is_at_hand_ends_when_it_is_freed) {
    near_world world;
    void* const head = world.begin(64);
    void* const second = world.join(head, 64);
    void* const third = world.join(head, 64);
    EXPECT_EQ(world.page_of(third), world.page_of(head));
    EXPECT_EQ(world.heap.free(head), free_result::done);
    EXPECT_EQ(world.heap.join_at_hand(head, 64, usual % attribute_sets), nullptr);
    EXPECT_EQ(world.join(head, 64), nullptr);
    EXPECT_NE(world.join(third, 64), nullptr);
    EXPECT_EQ(world.heap.free(third), free_result::done);
    EXPECT_EQ(world.heap.join_at_hand(third, 64, usual % attribute_sets), nullptr);
    // What the thread made last, too.
    constexpr unsigned attributes_set = usual % attribute_sets;
    void* const live = world.join(second, 64);
    void* const last = world.heap.join_at_hand(live, 64, attributes_set);
    ASSERT_NE(last, nullptr);
    EXPECT_EQ(world.heap.free(last), free_result::done);
    EXPECT_EQ(world.heap.join_at_hand(last, 64, attributes_set), nullptr);
    EXPECT_NE(world.join(second, 64), nullptr);
    EXPECT_EQ(world.broken(), "");
    // A group that leaves its page: from there on the other page is the newest.
    std::set<std::size_t> pages;
    for (int i = 0; i < 200; ++i) pages.insert(world.page_of(world.join(second, 64)));
    EXPECT_LE(pages.size(), 5u);
    EXPECT_EQ(world.broken(), "");
}

// A fork at any moment of other threads leaves parent and child with whole heaps.
TEST(near_fork, parent_and_child_have_whole_heaps) {
    if (thread_sanitized) GTEST_SKIP() << "ThreadSanitizer does not follow threads into a child";
    near_world world(64 * mib);
    name_word name;
    native::atomic<unsigned> stop;
    std::vector<std::jthread> busy;
    for (unsigned t = 0; t < 2; ++t)
        busy.emplace_back([&, t] {
            std::minstd_rand random(t + 1);
            std::vector<void*> mine;
            while (stop.load_acquire() == 0) {
                if (mine.size() > 500 || (!mine.empty() && random() % 2 == 0)) {
                    world.heap.free(mine.back());
                    mine.pop_back();
                } else {
                    mine.push_back(world.join(name, 8U + 8U * (random() % 200)));
                }
            }
        });
    busy.emplace_back([&] {
        pacer goes_on;
        while (stop.load_acquire() == 0) world.heap.decommit_free_memory(goes_on);
    });
    for (int i = 0; i < 40; ++i) {
        world.heap.fork_prepare();
        const pid_t child = fork();
        if (child == 0) {
            world.heap.fork_child();
            bool ok = world.broken().empty();
            for (int k = 0; k < 1'000; ++k) {
                void* const made = world.join(name, 200);
                ok = ok && made != nullptr;
                std::memset(made, 1, 200);
            }
            ok = ok && world.broken().empty();
            _exit(ok ? 0 : 1);
        }
        world.heap.fork_parent();
        ASSERT_GT(child, 0);
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_EQ(status, 0);
    }
    stop.store_release(1);
    busy.clear();
    EXPECT_EQ(world.broken(), "");
}

} // namespace
} // namespace obase::heap
