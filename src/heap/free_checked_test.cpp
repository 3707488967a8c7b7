// SPDX-License-Identifier: MIT
//
// space::free_checked(): places that are used again, and what the collector allocates.
#include "heap/space.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

namespace {

using namespace obase::heap;

struct destroyer {
    void operator()(space* s) const { space::destroy(s); }
};
using owned_space = std::unique_ptr<space, destroyer>;

owned_space make_space(bool check_frees) {
    std::string why;
    owned_space made(
        space::create({.range_bytes = std::size_t{16} << 20, .check_frees = check_frees}, &why));
    EXPECT_NE(made, nullptr) << why;
    return made;
}

class free_checked : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(both, free_checked, ::testing::Bool(),
                         [](const auto& given) { return given.param ? "tracked" : "untracked"; });

TEST_P(free_checked, objects_in_a_dense_run_that_is_used_again) {
    const owned_space s = make_space(GetParam());
    for (int round = 0; round < 3; ++round) {
        void* objects[2048];
        for (void*& object : objects) {
            object = s->allocate_dense(1, 64, {});
            ASSERT_NE(object, nullptr);
        }
        for (void* object : objects) {
            EXPECT_EQ(s->free_checked(object), free_result::done) << round;
            EXPECT_EQ(s->free_checked(object), free_result::freed_before) << round;
        }
        EXPECT_EQ(s->free_checked(objects[7]), free_result::freed_before);
        s->decommit_free_memory();
    }
    EXPECT_TRUE(s->validate(nullptr));
}

TEST_P(free_checked, what_the_collector_allocates_in_new) {
    const owned_space s = make_space(GetParam());
    void* object = s->allocate_dense(new_class, 64, {});
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(s->free_checked(object), free_result::done);
    EXPECT_EQ(s->free_checked(object), free_result::freed_before);
    object = s->allocate_dense(new_class, 64, {});
    s->undo_allocate_dense(object);
    void* again = s->allocate(64, {});
    EXPECT_EQ(again, object);
    s->free(again);
    EXPECT_TRUE(s->validate(nullptr));
}

TEST_P(free_checked, an_undone_object_in_a_dense_run) {
    const owned_space s = make_space(GetParam());
    void* first = s->allocate_dense(1, 64, {});
    void* undone = s->allocate_dense(1, 64, {});
    s->undo_allocate_dense(undone);
    EXPECT_EQ(s->free_checked(undone), free_result::no_object);
    EXPECT_EQ(s->free_checked(static_cast<char*>(first) + 8), free_result::no_object);
    EXPECT_EQ(s->allocate_dense(1, 32, {}), undone);
    EXPECT_EQ(s->free_checked(undone), free_result::done);
    EXPECT_EQ(s->free_checked(first), free_result::done);
    EXPECT_TRUE(s->validate(nullptr));
}

} // namespace
