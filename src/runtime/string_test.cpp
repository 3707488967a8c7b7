// SPDX-License-Identifier: MIT
//
// obase::string against std::string, and what makes it worth having: it survives being moved as
// bytes.
#include <obase/string.hpp>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <string>

namespace {

using obase::string;

TEST(string, small_and_large) {
    string s;
    EXPECT_TRUE(s.empty());
    EXPECT_STREQ(s.c_str(), "");
    s = "twenty-two characters!";
    EXPECT_EQ(s.size(), string::inline_capacity);
    EXPECT_EQ(s.capacity(), string::inline_capacity);
    s += "x";
    EXPECT_GT(s.capacity(), string::inline_capacity);
    EXPECT_EQ(s, "twenty-two characters!x");
    string moved = std::move(s);
    EXPECT_EQ(moved.size(), 23u);
    EXPECT_TRUE(s.empty()); // NOLINT: a moved-from string is empty, as documented by its tests
    EXPECT_LT(string("abc"), string("abd"));
    EXPECT_EQ(std::hash<string>{}("abc"), std::hash<std::string_view>{}("abc"));
}

TEST(string, appends_a_part_of_itself) {
    string s("0123456789");
    s.append(s.view());
    s.append(s.view());
    s.append(s.view().substr(5, 10));
    EXPECT_EQ(s.str(), "0123456789012345678901234567890123456789"
                       "5678901234");
    s.assign(s.view().substr(3, 30));
    EXPECT_EQ(s.str(), "345678901234567890123456789012");
}

// The point of the type: its bytes may be copied elsewhere and the source forgotten.
RC_GTEST_PROP(string_property, survives_relocation_by_bytes, (const std::string& text)) {
    alignas(string) unsigned char a[sizeof(string)], b[sizeof(string)];
    auto* source = ::new (a) string(text);
    std::memcpy(b, a, sizeof(string));
    std::memset(a, 0xdb, sizeof a);
    (void)source;
    auto* moved = std::launder(reinterpret_cast<string*>(b));
    RC_ASSERT(moved->view() == text);
    RC_ASSERT(moved->c_str()[text.size()] == '\0');
    moved->append(text);
    RC_ASSERT(moved->view() == text + text);
    moved->~string();
}

RC_GTEST_PROP(string_property, behaves_like_std_string, ()) {
    std::string model;
    string ours;
    const auto steps = *rc::gen::inRange(1, 40);
    for (int i = 0; i < steps; ++i) {
        const auto text = *rc::gen::string<std::string>();
        switch (*rc::gen::inRange(0, 8)) {
        case 0:
            model += text, ours += text;
            break;
        case 1:
            model = text, ours = text;
            break;
        case 2: {
            const auto n = *rc::gen::inRange<std::size_t>(0, 60);
            model.resize(n, 'z');
            ours.resize(n, 'z');
            break;
        }
        case 3:
            model.clear(), ours.clear();
            break;
        case 4: {
            string copy(ours);
            ours = copy;
            break;
        }
        case 5: {
            string other(text);
            std::string model_other(text);
            ours.swap(other);
            model.swap(model_other);
            break;
        }
        case 6:
            ours.reserve(*rc::gen::inRange<std::size_t>(0, 100));
            break;
        default:
            ours.push_back('q'), model.push_back('q');
            break;
        }
        RC_ASSERT(ours.view() == model);
        RC_ASSERT(ours.c_str()[model.size()] == '\0');
        RC_ASSERT(ours.capacity() >= ours.size());
    }
}

} // namespace
