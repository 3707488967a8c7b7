// SPDX-License-Identifier: MIT
//
// guide, owner, pin and retire as a user sees them, for every protocol: one body of tests, because
// user code is one template.
#include "testing/quiet_runtime.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace {

struct counted {
    int value = 0;
    static inline int alive = 0;
    explicit counted(int v) : value(v) { ++alive; }
    counted(const counted&) = delete;
    ~counted() { --alive; }
};

struct throws {
    throws() { throw 42; }
};

template <class Protocol>
struct parent {
    obase::guide<counted, Protocol> left;
    obase::guide<counted, Protocol> right;
    int mark = 7;
};

struct alignas(1024) wide {
    std::uint64_t id;
};

template <class Protocol>
struct chain_link {
    obase::owner<chain_link, Protocol> next;
    int value = 0;
    static inline int alive = 0;
    explicit chain_link(int v) : value(v) { ++alive; }
    ~chain_link() {
        value = -1;
        --alive;
    }
};

} // namespace

template <>
struct obase::is_relocatable<counted> : std::true_type {};
template <>
struct obase::is_relocatable<throws> : std::true_type {};
template <class Protocol>
struct obase::is_relocatable<parent<Protocol>> : std::true_type {};
template <class Protocol>
struct obase::is_relocatable<chain_link<Protocol>> : std::true_type {};

namespace {

template <class Protocol>
class guide_of : public ::testing::Test {
  public:
    template <class T>
    using guide = obase::guide<T, Protocol>;
    template <class T, class... A>
    static obase::owner<T, Protocol> make(A&&... a) {
        return obase::make_managed<T, Protocol>(std::forward<A>(a)...);
    }
    using scope = typename Protocol::scope;

    void SetUp() override {
        if constexpr (Protocol::moves_objects) obase::testing::quiet_runtime<Protocol>();
        counted::alive = 0;
    }
    void TearDown() override { EXPECT_EQ(counted::alive, 0) << "every object is destroyed once"; }

    // Lets the collector move what it may: touched objects to HOT at once, others to COLD after
    // C_t windows.
    static void collect(int windows = 1) {
        if constexpr (Protocol::moves_objects) {
            for (int i = 0; i < windows; ++i)
                ASSERT_EQ(obase::runtime::of<Protocol>().collect_now(),
                          obase::collect_result::done);
        }
    }
};

using protocols = ::testing::Types<obase::plain, obase::arming, obase::atc>;
TYPED_TEST_SUITE(guide_of, protocols);

#define USING_PROTOCOL                                                                             \
    using guide_t = typename TestFixture::template guide<counted>;                                 \
    using scope_t [[maybe_unused]] = typename TestFixture::scope;                                  \
    [[maybe_unused]] auto make = [](int v) { return TestFixture::template make<counted>(v); };     \
    static_assert(sizeof(guide_t) == 8)

TYPED_TEST(guide_of, is_null_until_it_owns_something) {
    USING_PROTOCOL;
    guide_t g;
    EXPECT_FALSE(g);
    EXPECT_TRUE(g == nullptr);
    EXPECT_EQ(g.peek(), nullptr);
    {
        scope_t s;
        EXPECT_EQ(g.get(), nullptr);
    }
    g = make(1);
    EXPECT_TRUE(g);
    EXPECT_FALSE(g == nullptr);
    g = nullptr;
    EXPECT_FALSE(g);
}

TYPED_TEST(guide_of, moves_ownership_like_unique_ptr) {
    USING_PROTOCOL;
    guide_t a = make(1);
    guide_t b = std::move(a);
    EXPECT_FALSE(a);
    scope_t s;
    EXPECT_EQ(b->value, 1);
    guide_t c = make(2);
    c = std::move(b);
    EXPECT_EQ(counted::alive, 1);
    EXPECT_EQ((*c).value, 1);
    c = std::move(c); // NOLINT: self-move keeps the object
    EXPECT_EQ(c->value, 1);
    guide_t d = make(3);
    swap(c, d);
    EXPECT_EQ(c->value, 3);
    EXPECT_EQ(d->value, 1);
    swap(c, c);
    EXPECT_EQ(c->value, 3);
}

TYPED_TEST(guide_of, gives_its_object_to_an_owner_and_takes_it_back) {
    USING_PROTOCOL;
    guide_t g = make(5);
    auto out = g.release();
    EXPECT_FALSE(g);
    EXPECT_EQ(out->value, 5);
    TestFixture::collect();
    EXPECT_EQ(out->value, 5) << "what an owner holds does not move";
    g = std::move(out);
    scope_t s;
    EXPECT_EQ(g->value, 5);
}

TYPED_TEST(guide_of, exchange_returns_what_was_there) {
    USING_PROTOCOL;
    guide_t g = make(1);
    auto old = g.exchange(make(2));
    EXPECT_EQ(old->value, 1);
    scope_t s;
    EXPECT_EQ(g->value, 2);
}

// Tag bits must not take part: the guide may be armed or plain, the comparison is by address.
TYPED_TEST(guide_of, compare_exchange_ignores_the_tag) {
    USING_PROTOCOL;
    guide_t g = make(1);
    for (int round = 0; round < 3; ++round) {
        scope_t s;
        counted* expected = g.get();
        auto desired = make(round + 10);
        ASSERT_TRUE(g.compare_exchange(expected, desired));
        ASSERT_TRUE(desired) << "the former object comes back";
        EXPECT_EQ(g->value, round + 10);
    }
    TestFixture::collect();
    scope_t s;
    counted other(0);
    counted* expected = &other;
    auto desired = make(99);
    EXPECT_FALSE(g.compare_exchange(expected, desired));
    EXPECT_EQ(expected, g.get()) << "a failed exchange gives the current address";
    EXPECT_EQ(desired->value, 99) << "and leaves the desired object alone";
    counted* null = nullptr;
    EXPECT_FALSE(g.compare_exchange(null, desired));
    guide_t empty;
    null = nullptr;
    EXPECT_TRUE(empty.compare_exchange(null, desired));
    EXPECT_FALSE(desired);
}

TYPED_TEST(guide_of, objects_inside_objects_survive_moves) {
    using node = parent<TypeParam>;
    using scope_t = typename TestFixture::scope;
    std::vector<obase::guide<node, TypeParam>> nodes;
    for (int i = 0; i < 1000; ++i) {
        auto n = TestFixture::template make<node>();
        n->left = TestFixture::template make<counted>(i);
        n->right = TestFixture::template make<counted>(-i);
        nodes.emplace_back(std::move(n));
    }
    EXPECT_EQ(counted::alive, 2000);
    for (int window = 0; window < 12; ++window) {
        TestFixture::collect();
        scope_t s;
        for (int i = 0; i < 1000; i += window + 1) {
            ASSERT_EQ(nodes[static_cast<std::size_t>(i)]->left->value, i);
            ASSERT_EQ(nodes[static_cast<std::size_t>(i)]->right->value, -i);
        }
    }
    if constexpr (TypeParam::moves_objects) {
        EXPECT_GT(obase::testing::moves_of(obase::runtime::of<TypeParam>().statistics()), 3000u);
    }
}

TYPED_TEST(guide_of, constructors_that_throw_leave_nothing_behind) {
    EXPECT_THROW((obase::make_managed<throws, TypeParam>()), int);
}

TYPED_TEST(guide_of, keeps_alignment_wherever_the_object_goes) {
    using scope_t = typename TestFixture::scope;
    std::vector<obase::guide<wide, TypeParam>> guides;
    for (std::uint64_t i = 0; i < 50; ++i)
        guides.emplace_back(obase::make_managed<wide, TypeParam>(wide{i}));
    for (int window = 0; window < 8; ++window) {
        scope_t s;
        for (std::uint64_t i = 0; i < 50; i += 1 + static_cast<std::uint64_t>(window)) {
            wide* w = guides[i].get();
            ASSERT_EQ(reinterpret_cast<std::uintptr_t>(w) % 1024, 0u);
            ASSERT_EQ(w->id, i);
        }
        TestFixture::collect(0);
    }
    TestFixture::collect(6);
    scope_t s;
    for (std::uint64_t i = 0; i < 50; ++i)
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(guides[i].get()) % 1024, 0u);
}

TYPED_TEST(guide_of, byte_strings_of_every_size) {
    using scope_t = typename TestFixture::scope;
    std::vector<obase::guide<obase::bytes, TypeParam>> guides;
    std::vector<std::string> expected;
    for (const int bytes :
         {0, 1, 3, 4, 5, 30, 100, 124, 125, 1020, 1024, 4096, 16380, 16381, 65536, 1000000}) {
        const auto size = static_cast<std::size_t>(bytes);
        expected.push_back(std::string(size, static_cast<char>('a' + size % 26)));
        guides.emplace_back(obase::make_bytes<TypeParam>(expected.back()));
    }
    for (int window = 0; window < 6; ++window) {
        TestFixture::collect();
        scope_t s;
        for (std::size_t i = 0; i < guides.size(); ++i) {
            ASSERT_EQ(guides[i]->size(), expected[i].size());
            ASSERT_TRUE(*guides[i] == expected[i]) << expected[i].size();
        }
    }
    TestFixture::collect(8); // into COLD
    scope_t s;
    for (std::size_t i = 0; i < guides.size(); ++i) ASSERT_TRUE(*guides[i] == expected[i]);
}

TYPED_TEST(guide_of, retire_waits_for_the_scope) {
    USING_PROTOCOL;
    guide_t g = make(1);
    {
        scope_t s;
        counted* seen = g.get();
        obase::retire(g.exchange(make(2)));
        obase::runtime::get().reclaim_now();
        obase::runtime::of<std::conditional_t<TypeParam::moves_objects, TypeParam, obase::arming>>()
            .reclaim_now();
        EXPECT_EQ(counted::alive, 2);
        EXPECT_EQ(seen->value, 1) << "a scope that was open keeps it";
    }
    auto& runtime = obase::runtime::of<
        std::conditional_t<TypeParam::moves_objects, TypeParam, obase::arming>>();
    // The collector may hold the reclaimer for a moment: ask until the object is gone.
    while (counted::alive != 1) runtime.reclaim_now();
    obase::retire(std::move(g));
    EXPECT_FALSE(g);
    while (counted::alive != 0) runtime.reclaim_now();
}

TYPED_TEST(guide_of, a_pin_outlives_the_scope) {
    USING_PROTOCOL;
    guide_t g = make(3);
    obase::pin<counted, TypeParam> pinned;
    EXPECT_FALSE(pinned);
    {
        scope_t s;
        pinned = obase::pin(g);
    }
    counted* where = pinned.get();
    TestFixture::collect(8);
    {
        scope_t s;
        EXPECT_EQ(g.get(), where) << "pinned objects do not move";
    }
    auto& runtime = obase::runtime::of<
        std::conditional_t<TypeParam::moves_objects, TypeParam, obase::arming>>();
    obase::retire(std::move(g));
    for (int i = 0; i < 5; ++i) runtime.reclaim_now();
    EXPECT_EQ(pinned->value, 3) << "a pin keeps a retired object";
    auto handed_over = std::move(pinned);
    EXPECT_FALSE(pinned);
    handed_over.reset();
    while (counted::alive != 0) runtime.reclaim_now();
}

// As with std::unique_ptr: what is assigned may lie in the object that the assignment ends.
TYPED_TEST(guide_of, an_owner_takes_over_from_inside_its_own_object) {
    using link_t = chain_link<TypeParam>;
    {
        auto list = TestFixture::template make<link_t>(1);
        list->next = TestFixture::template make<link_t>(2);
        list->next->next = TestFixture::template make<link_t>(3);
        list = std::move(list->next);
        EXPECT_EQ(link_t::alive, 2);
        ASSERT_TRUE(list);
        EXPECT_EQ(list->value, 2);
        EXPECT_EQ(list->next->value, 3);
        auto& self = list;
        list = std::move(self);
        EXPECT_EQ(list->value, 2);
    }
    EXPECT_EQ(link_t::alive, 0);
}

TYPED_TEST(guide_of, sizes_that_do_not_fit_are_refused) {
    const auto make_with = [](std::size_t extra) {
        return obase::make_managed_with<wide, TypeParam>({.extra_bytes = extra}, wide{1});
    };
    const auto make_text = [](std::size_t extra) {
        return obase::make_bytes<TypeParam>("contents", {.extra_bytes = extra});
    };
    for (const unsigned less :
         {0u, 1u, 7u, 8u, 12u, 40u, 512u, 1023u, 1024u, 1025u, 2047u, 4096u}) {
        const std::size_t extra = SIZE_MAX - less;
        EXPECT_THROW(make_with(extra), std::bad_alloc) << "SIZE_MAX - " << less;
        EXPECT_THROW(make_text(extra), std::bad_alloc) << "SIZE_MAX - " << less;
    }
    EXPECT_GE(TypeParam::usable_size(make_with(4096).get()), 1024u + 4096u);
}

TYPED_TEST(guide_of, many_pins) {
    USING_PROTOCOL;
    std::vector<guide_t> guides;
    std::vector<obase::pin<counted, TypeParam>> pins;
    for (int i = 0; i < 200; ++i) guides.emplace_back(make(i));
    {
        scope_t s;
        for (auto& g : guides) pins.emplace_back(g);
    }
    TestFixture::collect(6);
    for (int i = 0; i < 200; ++i) ASSERT_EQ(pins[static_cast<std::size_t>(i)]->value, i);
}

TYPED_TEST(guide_of, guides_of_a_dropped_area_can_be_forgotten) {
    USING_PROTOCOL;
    std::vector<obase::owner<counted, TypeParam>> kept;
    {
        auto area = std::make_unique<unsigned char[]>(64 * sizeof(guide_t));
        auto* first = reinterpret_cast<guide_t*>(area.get());
        for (int i = 0; i < 64; ++i) {
            auto* g = ::new (static_cast<void*>(first + i)) guide_t(make(i));
            kept.push_back(g->release());
            *g = TestFixture::template make<counted>(i);
            kept.push_back(g->release());
        }
        obase::forget_guides<TypeParam>(area.get(), 64 * sizeof(guide_t));
    }
    TestFixture::collect(3);
}

} // namespace
