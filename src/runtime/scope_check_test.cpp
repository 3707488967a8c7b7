// SPDX-License-Identifier: MIT
//
// The debug check of scopes: a dereference outside ends the program with a message, one inside
// works. The check is in the header, so this test has it in every build (OBASE_DEBUG_CHECKS, set
// for its target).
#include "testing/child_process.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace {

using obase::testing::require;
using obase::testing::run_in_child;

template <class Protocol>
class scope_check : public ::testing::Test {};
using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(scope_check, protocols);

template <class Body>
void expect_refusal(Body&& body) {
    const auto child = run_in_child(body);
    EXPECT_EQ(child.status, 1000 + SIGABRT) << child.err;
    EXPECT_NE(child.err.find("a guide was dereferenced outside of a scope"), std::string::npos)
        << child.err;
}

TYPED_TEST(scope_check, a_dereference_outside_ends_the_program) {
    expect_refusal([] {
        obase::guide<int, TypeParam> g = obase::make_managed<int, TypeParam>(7);
        return *g;
    });
}

TYPED_TEST(scope_check, so_does_one_after_the_scope_ended) {
    expect_refusal([] {
        obase::guide<int, TypeParam> g = obase::make_managed<int, TypeParam>(7);
        {
            const obase::basic_scope<TypeParam> s;
            require(*g == 7, "inside it works");
        }
        return g.get() != nullptr ? 0 : 1;
    });
}

TYPED_TEST(scope_check, and_a_compare_exchange) {
    expect_refusal([] {
        obase::guide<int, TypeParam> g;
        int* expected = nullptr;
        auto desired = obase::make_managed<int, TypeParam>(7);
        return g.compare_exchange(expected, desired) ? 0 : 1;
    });
}

TYPED_TEST(scope_check, what_needs_no_scope_works_without) {
    const auto child = run_in_child([] {
        obase::guide<int, TypeParam> g = obase::make_managed<int, TypeParam>(7);
        obase::guide<int, TypeParam> other;
        require(g && !other && other == nullptr && g.peek() != nullptr, "null tests");
        swap(g, other);
        require(!g && other, "swap");
        g = std::move(other);
        auto owned = g.release();
        require(*owned == 7, "an owner needs no scope");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
