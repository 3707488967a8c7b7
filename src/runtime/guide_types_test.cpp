// SPDX-License-Identifier: MIT
//
// Guides of const objects, of base classes and of arrays, and make_string: that they hold what was
// put in, end it as what it is, and that it moves. What does not compile is in refused_types.cpp and
// refused_conversions.cpp.
#include "testing/quiet_runtime.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace {

struct shape {
    static inline int alive = 0;
    shape() noexcept { ++alive; }
    virtual ~shape() { --alive; }
    virtual int sides() const = 0;
};
template <class Protocol>
struct polygon : shape {
    static inline int alive = 0;
    int n;
    obase::guide<int, Protocol> name; // its destructor must run
    explicit polygon(int sides) : n(sides), name(obase::make_managed<int, Protocol>(sides)) {
        ++alive;
    }
    ~polygon() override { --alive; }
    int sides() const override { return n; }
};

struct counted {
    static inline int alive = 0;
    static inline int until_throw = -1;
    int value = 5;
    counted() {
        if (until_throw-- == 0) throw 42;
        ++alive;
    }
    counted(const counted&) = delete;
    ~counted() { --alive; }
};

} // namespace

template <class Protocol>
struct obase::is_relocatable<polygon<Protocol>> : std::true_type {};
template <>
struct obase::is_relocatable<counted> : std::true_type {};

namespace {

template <class Protocol>
class guide_types : public ::testing::Test {
  public:
    using scope = typename Protocol::scope;
    template <class T>
    using guide = obase::guide<T, Protocol>;

    void SetUp() override {
        if constexpr (Protocol::moves_objects) obase::testing::quiet_runtime<Protocol>();
    }
    void TearDown() override {
        obase::testing::quiet_runtime<obase::arming>().reclaim_now();
        if constexpr (Protocol::moves_objects)
            obase::testing::quiet_runtime<Protocol>().reclaim_now();
        EXPECT_EQ(shape::alive, 0);
        EXPECT_EQ(polygon<Protocol>::alive, 0) << "destroyed as what it is";
        EXPECT_EQ(counted::alive, 0) << "every element is destroyed once";
    }
    // Enough windows for all that was touched before to have moved.
    static void collect() {
        if constexpr (Protocol::moves_objects) {
            for (int i = 0; i < 3; ++i) {
                ASSERT_EQ(obase::testing::quiet_runtime<Protocol>().collect_now(),
                          obase::collect_result::done);
            }
        }
    }
};
using protocols = ::testing::Types<obase::plain, obase::arming, obase::atc>;
TYPED_TEST_SUITE(guide_types, protocols);

TYPED_TEST(guide_types, of_const_is_made_and_taken_over) {
    using P = TypeParam;
    std::vector<obase::guide<const int, P>> all(1000);
    for (int i = 0; i < 1000; ++i) {
        if (i % 2 == 0)
            all[static_cast<std::size_t>(i)] = obase::make_managed<const int, P>(i);
        else
            all[static_cast<std::size_t>(i)] = obase::make_managed<int, P>(i);
    }
    const void* const first = all[0].peek();
    for (int window = 0; window < 3; ++window) {
        for (int i = 0; i < 1000; ++i) {
            const typename P::scope s;
            EXPECT_EQ(*all[static_cast<std::size_t>(i)], i);
        }
        this->collect();
    }
    EXPECT_EQ(first == all[0].peek(), !P::moves_objects) << "objects of const type move";

    const typename P::scope s;
    const int* expected = all[1].get();
    obase::owner<const int, P> other = obase::make_managed<int, P>(7);
    EXPECT_TRUE(all[1].compare_exchange(expected, other));
    EXPECT_EQ(*other, 1);
    EXPECT_EQ(*all[1], 7);
    const obase::pin pinned(all[1]);
    EXPECT_EQ(*pinned, 7);
    obase::retire(std::move(other));
    obase::guide<int, P> mutable_one = obase::make_managed<int, P>(8);
    all[1] = std::move(mutable_one);
    EXPECT_EQ(mutable_one, nullptr);
    EXPECT_EQ(*all[1], 8);
}

TYPED_TEST(guide_types, of_a_base_holds_and_ends_the_derived) {
    using P = TypeParam;
    std::vector<obase::guide<shape, P>> all(1000);
    for (int i = 0; i < 1000; ++i)
        all[static_cast<std::size_t>(i)] = obase::make_managed<polygon<P>, P>(i);
    EXPECT_EQ(polygon<P>::alive, 1000);
    const void* const first = all[0].peek();
    for (int window = 0; window < 3; ++window) {
        for (int i = 0; i < 1000; ++i) {
            const typename P::scope s;
            EXPECT_EQ(all[static_cast<std::size_t>(i)]->sides(), i);
        }
        this->collect();
    }
    EXPECT_EQ(first == all[0].peek(), !P::moves_objects);

    obase::guide<polygon<P>, P> exact = obase::make_managed<polygon<P>, P>(77);
    const void* const where = exact.peek();
    obase::guide<const shape, P> general = std::move(exact);
    EXPECT_EQ(exact, nullptr);
    EXPECT_EQ(static_cast<const void*>(general.peek()), where) << "one address, one object";
    all[3] = obase::owner<shape, P>(obase::make_managed<polygon<P>, P>(4));
    EXPECT_EQ(polygon<P>::alive, 1001) << "what it replaced is destroyed";
    obase::retire(all[4].release());
    obase::retire(std::move(general));
}

TYPED_TEST(guide_types, of_an_array) {
    using P = TypeParam;
    using array = obase::guide<std::uint64_t[], P>;
    const std::size_t length = 100;
    std::vector<array> all(500);
    for (std::size_t k = 0; k < all.size(); ++k) {
        obase::owner<std::uint64_t[], P> made = obase::make_managed<std::uint64_t[], P>(length);
        ASSERT_EQ(made.size(), length);
        for (std::size_t i = 0; i < length; ++i) {
            ASSERT_EQ(made[i], 0u) << "value-initialized";
            made[i] = k * 1000 + i;
        }
        all[k] = std::move(made);
    }
    const void* const first = all[0].peek();
    for (int window = 0; window < 3; ++window) {
        for (std::size_t k = 0; k < all.size(); ++k) {
            const typename P::scope s;
            ASSERT_EQ(all[k].size(), length);
            ASSERT_EQ(all[k][length - 1], k * 1000 + length - 1);
            std::uint64_t sum = 0;
            for (const std::uint64_t x : *all[k]) sum += x;
            ASSERT_EQ(sum, k * 1000 * length + length * (length - 1) / 2);
        }
        this->collect();
    }
    EXPECT_EQ(first == all[0].peek(), !P::moves_objects);

    const typename P::scope s;
    EXPECT_EQ(array().size(), 0u);
    const obase::pin pinned(all[2]);
    EXPECT_EQ(pinned->size(), length);
    obase::retire(all[3].release());
    obase::retire(std::move(all[4]));
    all[5] = all[6].exchange(obase::make_managed<std::uint64_t[], P>(2));
    EXPECT_EQ(all[5][0], 6000u);
    EXPECT_EQ(all[6].size(), 2u);
    EXPECT_EQ((obase::make_managed<int[], P>(0).size()), 0u);
}

TYPED_TEST(guide_types, elements_of_an_array_end_once_also_when_one_throws) {
    using P = TypeParam;
    {
        obase::guide<counted[], P> ten = obase::make_managed<counted[], P>(10);
        EXPECT_EQ(counted::alive, 10);
        // Above 16 KiB: pages of its own.
        obase::guide<counted[], P> many = obase::make_managed<counted[], P>(100'000);
        EXPECT_EQ(counted::alive, 100'010);
    }
    EXPECT_EQ(counted::alive, 0);
    counted::until_throw = 6;
    EXPECT_THROW((obase::make_managed<counted[], P>(10)), int);
    counted::until_throw = -1;
    EXPECT_EQ(counted::alive, 0);
    EXPECT_THROW((obase::make_managed<counted[], P>(SIZE_MAX / 2)), std::bad_alloc);
    EXPECT_THROW((obase::make_managed<std::uint64_t[], P>(SIZE_MAX / 8 + 1)), std::bad_alloc);
}

TYPED_TEST(guide_types, arrays_of_guides_nest) {
    using P = TypeParam;
    obase::guide<obase::guide<int, P>[], P> outer =
        obase::make_managed<obase::guide<int, P>[], P>(50);
    for (int round = 0; round < 4; ++round) {
        {
            const typename P::scope s;
            for (int i = 0; i < 50; ++i) {
                obase::guide<int, P>& inner = outer[static_cast<std::size_t>(i)];
                if (round == 0)
                    inner = obase::make_managed<int, P>(i);
                else
                    EXPECT_EQ(*inner, i);
            }
        }
        this->collect();
    }
}

TYPED_TEST(guide_types, make_string_copies_the_text) {
    using P = TypeParam;
    obase::guide<obase::string, P> text =
        obase::make_string<P>("a text that is longer than inline");
    const typename P::scope s;
    EXPECT_EQ(*text, "a text that is longer than inline");
}

} // namespace
