// SPDX-License-Identifier: MIT
//
// What AddressSanitizer tells a user of managed objects: asan_program, which is built with it, is run once
// for each mistake, and must end with the report that docs/building.md promises; and without a word when
// it makes none. The library is the one of this build: usually without the sanitizer.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <string>
#include <sys/wait.h>

namespace {

struct ended {
    int status = -1;
    std::string said;
};

ended run(const std::string& program, const std::string& protocol, const std::string& name,
          const std::string& environment = "") {
    // Of the environment, only what is asked for: the reports differ else.
    const std::string command = "env -u ASAN_OPTIONS -u LSAN_OPTIONS " + environment + " " +
                                program + " " + protocol + " " + name + " 2>&1";
    ended result;
    std::FILE* const pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return result;
    char text[4096];
    while (const std::size_t got = std::fread(text, 1, sizeof text, pipe))
        result.said.append(text, got);
    const int status = pclose(pipe);
    result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    return result;
}

// A program with its library, in it or beside it, and a protocol.
struct way {
    const char* program;
    const char* protocol;
};
constexpr way with_archive = {OBASE_TEST_ASAN_PROGRAM, "arming"};
constexpr way with_atc = {OBASE_TEST_ASAN_PROGRAM, "atc"};
constexpr way with_shared_library = {OBASE_TEST_ASAN_PROGRAM_SHARED, "arming"};
constexpr way ways[] = {with_archive, with_atc, with_shared_library};

std::ostream& operator<<(std::ostream& out, const way& w) {
    return out << w.program << ' ' << w.protocol << ": ";
}

struct Asan : testing::TestWithParam<const char*> {};

TEST_P(Asan, reports_the_mistake) {
    for (const way& w : ways) {
        const ended child = run(w.program, w.protocol, GetParam());
        EXPECT_NE(child.said.find("use-after-poison"), std::string::npos) << w << child.said;
        EXPECT_EQ(child.said.find("asan_program:"), std::string::npos) << w << child.said;
        EXPECT_NE(child.status, 0) << w;
    }
}
INSTANTIATE_TEST_SUITE_P(mistakes, Asan,
                         testing::Values("freed_small", "freed_medium", "freed_large", "freed_end",
                                         "freed_elsewhere", "freed_after_its_move", "moved_small",
                                         "moved_medium", "reclaimed", "beyond_medium",
                                         "beyond_large", "beyond_all", "beyond_its_copy",
                                         "beyond_in_a_used_block", "filled_after_its_end"),
                         [](const testing::TestParamInfo<const char*>& mistake) {
                             return std::string(mistake.param);
                         });

void expect_clean(const way& w, const char* environment) {
    const ended child = run(w.program, w.protocol, "clean", environment);
    EXPECT_EQ(child.status, 0) << w << environment;
    EXPECT_EQ(child.said.find("Sanitizer"), std::string::npos) << w << environment << child.said;
    EXPECT_NE(child.said.find("asan_program: ended"), std::string::npos)
        << w << environment << child.said;
}

// Also with patterns in freed objects, with checked frees, over a file, and with objects of malloc's.
TEST(AsanProgram, that_makes_no_mistake_ends_without_a_report) {
    for (const way& w : {with_archive, with_atc})
        for (const char* environment :
             {"", "OBASE_POISON_FREED=1", "OBASE_POISON_FREED=1 OBASE_CHECK_FREES=1",
              "OBASE_COLD_BACKING=file:/tmp OBASE_COLD_THRESHOLD=1", "OBASE_HEAP_RESERVE=1M"})
            expect_clean(w, environment);
    expect_clean(with_shared_library, "");
}

// What a managed object owns is not leaked, which the test above sees; what only a freed one knew of is.
TEST(AsanProgram, is_told_of_leaks) {
    for (const way& w : ways) {
        const ended child = run(w.program, w.protocol, "leaked");
        EXPECT_NE(child.said.find("detected memory leaks"), std::string::npos) << w << child.said;
        EXPECT_NE(child.said.find("1000 byte(s)"), std::string::npos) << w << child.said;
    }
}

} // namespace
