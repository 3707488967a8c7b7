// SPDX-License-Identifier: MIT
//
// The library says the version that its package says, and how this very binary was built.
#include <gtest/gtest.h>

#include <obase/version.h>
#include <obase/version.hpp>

#include <string>

TEST(Version, IsThePackagesVersion) { EXPECT_STREQ(obase::version(), OBASE_EXPECTED_VERSION); }

TEST(Version, IsTheSameInC) {
    EXPECT_STREQ(obase_version(), obase::version());
    EXPECT_STREQ(obase_build(), obase::build());
}

TEST(Version, BuildNamesTheCompilerAndTheChecks) {
    const std::string build = obase::build();
#if defined(__clang__)
    EXPECT_EQ(build.find("clang++ "), 0U) << build;
#else
    EXPECT_EQ(build.find("g++ "), 0U) << build;
#endif
#if defined(OBASE_DEBUG_CHECKS)
    EXPECT_NE(build.find(", scope checks"), std::string::npos) << build;
#else
    EXPECT_NE(build.find(", no checks"), std::string::npos) << build;
#endif
#if defined(__SANITIZE_THREAD__)
    EXPECT_NE(build.find(", sanitizer thread"), std::string::npos) << build;
#endif
}
