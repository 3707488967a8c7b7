// SPDX-License-Identifier: MIT
//
// Used memory follows what is really used: anonymous memory while it is there, and cached pages of
// an unnamed file whether they are mapped or not.
#include "tools/ycsb/process_memory.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

namespace obase::tools {
namespace {

constexpr std::size_t size = std::size_t{64} << 20;
constexpr std::uint64_t slack = std::uint64_t{4} << 20;

void expect_growth(const memory_sample& before, const memory_sample& after, std::uint64_t bytes) {
    EXPECT_NEAR(static_cast<double>(after.used - before.used), static_cast<double>(bytes), slack);
    EXPECT_NEAR(static_cast<double>(after.witness - before.witness), static_cast<double>(bytes),
                slack);
}

class UsedMemory : public ::testing::TestWithParam<bool> {
  public:
    UsedMemory() {
        if (GetParam()) group.emplace();
    }
    void SetUp() override {
        if (GetParam() && !group->group().made())
            GTEST_SKIP() << "no control group can be made here";
    }
    const control_group* group_or_null() const { return group ? &group->group() : nullptr; }
    std::optional<own_control_group> group;
};

TEST_P(UsedMemory, CountsAnonymousMemory) {
    const memory_meter meter("", group_or_null());
    const memory_sample before = meter.sample();
    void* memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::memset(memory, 1, size);
    expect_growth(before, meter.sample(), size);
    ::munmap(memory, size);
    expect_growth(before, meter.sample(), 0);
}

TEST_P(UsedMemory, CountsCachedPagesOfTheColdFileThatAreNotMapped) {
    const char* const directory = "/var/tmp";
    const int fd = ::open(directory, O_TMPFILE | O_RDWR, 0600);
    if (fd < 0) GTEST_SKIP() << "no unnamed files in " << directory;
    ASSERT_EQ(::ftruncate(fd, size), 0);
    const memory_meter meter(directory, group_or_null());
    const memory_sample before = meter.sample();
    void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(memory, MAP_FAILED);
    std::memset(memory, 1, size);
    expect_growth(before, meter.sample(), size);
    // Out of the page tables, but not out of memory.
    ASSERT_EQ(::madvise(memory, size, MADV_DONTNEED), 0);
    const memory_sample unmapped = meter.sample();
    EXPECT_LT(unmapped.rss, before.rss + slack);
    expect_growth(before, unmapped, size);
    // Out of memory.
    ASSERT_EQ(::fsync(fd), 0);
    ASSERT_EQ(::posix_fadvise(fd, 0, size, POSIX_FADV_DONTNEED), 0);
    // Pages under writeback, or in another processor's batch, stay for a moment.
    for (int tries = 0; tries < 1000 && meter.sample().witness > before.witness + slack; ++tries) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ASSERT_EQ(::posix_fadvise(fd, 0, size, POSIX_FADV_DONTNEED), 0);
    }
    expect_growth(before, meter.sample(), 0);
    ::munmap(memory, size);
    ::close(fd);
}

INSTANTIATE_TEST_SUITE_P(Methods, UsedMemory, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "group" : "process"; });

} // namespace
} // namespace obase::tools
