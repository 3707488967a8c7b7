// SPDX-License-Identifier: MIT
//
// Another program, run and measured: its environment, how it ended, what it said.
#include "wiscsort/device/child.hpp"
#include "wiscsort/error.hpp"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace wiscsort::device {

TEST(Child, HasTheEnvironmentThatWasAsked) {
    ::setenv("WISCSORT_TEST_NAME", "inherited", 1);
    ::setenv("WISCSORT_TEST_NAME_2", "inherited", 1);
    const child_result r = run_child({"env"}, {"WISCSORT_TEST_NAME=asked"});
    ::unsetenv("WISCSORT_TEST_NAME");
    ::unsetenv("WISCSORT_TEST_NAME_2");
    EXPECT_EQ(r.exit_code, 0);
    EXPECT_NE(r.output.find("WISCSORT_TEST_NAME=asked\n"), std::string::npos) << r.output;
    EXPECT_NE(r.output.find("WISCSORT_TEST_NAME_2=inherited\n"), std::string::npos) << r.output;
    EXPECT_EQ(r.output.find("WISCSORT_TEST_NAME=inherited"), std::string::npos) << r.output;
}

TEST(Child, SaysHowItEnded) {
    const child_result failed = run_child({"sh", "-c", "echo out; echo err >&2; exit 3"});
    EXPECT_EQ(failed.exit_code, 3);
    EXPECT_EQ(failed.output, "out\nerr\n");
    EXPECT_EQ(run_child({"sh", "-c", "kill -TERM $$"}).exit_code, 128 + 15);
    EXPECT_THROW(run_child({"/no/such/program"}), error);
    // More than is kept, so that it does not wait for a reader.
    EXPECT_EQ(run_child({"sh", "-c", "head -c 1000000 /dev/zero"}).output.substr(0, 2),
              std::string(2, '\0'));
}

} // namespace wiscsort::device
