// SPDX-License-Identifier: MIT
#include "tools/kv/load_spec.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>

namespace obase::tools {
namespace {

std::string complaint(const std::function<void()>& what) {
    try {
        what();
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(LoadSpec, NameAndParameters) {
    load_spec spec("hot:data=.2,shift-every=30s,begin=5e6,file=/a/b", 1000);
    EXPECT_EQ(spec.name(), "hot");
    EXPECT_EQ(spec.number("data", 0, 0, 1), .2);
    EXPECT_EQ(spec.number("accesses", .8, 0, 1), .8);
    EXPECT_EQ(spec.operations("shift-every", 0), 30'000u);
    EXPECT_EQ(spec.operations("begin", 0), 5'000'000u);
    EXPECT_EQ(spec.text("file"), "/a/b");
    EXPECT_TRUE(spec.given("data"));
    EXPECT_FALSE(spec.given("accesses"));
    EXPECT_EQ(complaint([&] { spec.all_taken(); }), "");
    EXPECT_EQ(load_spec("uniform", 0).name(), "uniform");
}

TEST(LoadSpec, WhatIsWrongIsNamed) {
    const auto says = [](const std::string& message, const std::string& part) {
        EXPECT_NE(message.find(part), std::string::npos) << message;
    };
    says(complaint([] { load_spec("hot:", 0); }), "PARAMETER=VALUE where '' stands");
    says(complaint([] { load_spec("hot:data", 0); }), "where 'data' stands");
    says(complaint([] { load_spec("hot:a=1,,b=2", 0); }), "where '' stands");
    says(complaint([] { load_spec("hot:a=1,a=2", 0); }), "a is given twice");
    says(complaint([] { load_spec("hot:a=1", 0).all_taken(); }), "it has no parameter a");
    load_spec spec("hot:data=2,n=1.5,when=3s,zero=-1,empty=", 0);
    says(complaint([&] { spec.number("data", 0, 0, 1); }), "data=2: expected a number from 0 to 1");
    says(complaint([&] { spec.whole("n", 0, 0, 9); }),
         "n=1.5: expected a whole number from 0 to 9");
    says(complaint([&] { spec.operations("when", 0); }), "when=3s");
    says(complaint([&] { spec.operations("when", 0); }), "--rate");
    says(complaint([&] { spec.operations("zero", 0); }),
         "zero=-1: expected a number of operations");
    says(complaint([&] { spec.text("empty"); }), "empty=: expected");
    says(complaint([&] { spec.text("file"); }), "expected file=");
}

} // namespace
} // namespace obase::tools
