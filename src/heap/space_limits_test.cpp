// SPDX-License-Identifier: MIT
//
// What happens when something runs out: address space, commit, disk, the range itself. Always:
// nullptr, a count, and a space that goes on working. Calls that fail are injected beneath src/os.
#include "heap/space.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "heap/sanitized.hpp"
#include "os/process.hpp"
#include "testing/failing_calls.hpp"
#include "testing/test_directory.hpp"

namespace obase::heap {
namespace {

constexpr unsigned hot_class = 1, cold_class = 2;

struct destroyer {
    void operator()(space* s) const { space::destroy(s); }
};
using owned_space = std::unique_ptr<space, destroyer>;

owned_space make_space(const space_options& options) {
    std::string why;
    owned_space made(space::create(options, &why));
    EXPECT_NE(made, nullptr) << why;
    return made;
}

constexpr std::size_t mib = 1U << 20;

using testing::fault;

class space_limits : public ::testing::Test {
    testing::failing_calls calls_;
};

// LARGE numbers its pages in 32 bits; ranges of 16 TiB have one page too many for that.
TEST_F(space_limits, an_object_as_large_as_the_largest_range_is_refused) {
    constexpr std::size_t tib = std::size_t{1} << 40;
    const owned_space owner(space::create({.range_bytes = 16 * tib}, nullptr));
    if (owner == nullptr) GTEST_SKIP() << "no address space for ranges of 16 TiB";
    space& s = *owner;
    void* const first = s.allocate(100'000, {});
    ASSERT_NE(first, nullptr);
    for (const std::size_t size : {16 * tib, 16 * tib + 1, 16 * tib - 1, 16 * tib - 4096, 32 * tib})
        EXPECT_EQ(s.allocate(size, {}), nullptr) << size;
    EXPECT_GE(s.info(first).size, 100'000u);
    s.free(first);
    std::string what;
    EXPECT_TRUE(s.validate(&what)) << what;
}

// Fills each range to its end. Nothing overlaps into the next range, and what is freed can be had
// again.
TEST_F(space_limits, a_range_that_is_full_says_so) {
    const owned_space owner = make_space({.range_bytes = 4 * mib});
    space& s = *owner;
    std::vector<void*> objects;
    const auto take_all = [&](auto&& allocate, unsigned cls, std::size_t size) {
        objects.clear();
        while (void* const p = allocate()) {
            ASSERT_EQ(s.class_of(p), cls);
            std::memset(p, 1, size);
            objects.push_back(p);
            ASSERT_LE(objects.size(), 4 * mib / size);
        }
        EXPECT_GE(objects.size() * size, 4 * mib * 9 / 10);
    };
    for (int round = 0; round < 3; ++round) {
        take_all([&] { return s.allocate(1024, {}); }, new_class, 1024);
        for (void* p : objects) s.free(p);
        take_all([&] { return s.allocate(64, {}); }, new_class, 64);
        for (void* p : objects) s.free(p);
        take_all([&] { return s.allocate_dense(hot_class, 1024, {}); }, hot_class, 1024);
        for (void* p : objects) s.free(p);
        take_all([&] { return s.allocate(20'480, {}); }, s.large_class(), 20'480);
        for (void* p : objects) s.free(p);
        s.decommit_free_memory();
        std::string what;
        ASSERT_TRUE(s.validate(&what)) << what;
    }
    EXPECT_EQ(s.failures(), 12U);
}

TEST_F(space_limits, no_memory_to_commit) {
    const owned_space owner = make_space({.range_bytes = 64 * mib});
    space& s = *owner;
    fault.mprotect = true;
    EXPECT_EQ(s.allocate(64, {}), nullptr);
    EXPECT_EQ(s.allocate(64'000, {}), nullptr);
    EXPECT_EQ(s.allocate_dense(hot_class, 64, {}), nullptr);
    s.mark_touched(s.range_begin(hot_class), 64);
    EXPECT_EQ(s.touched_in(hot_class).pages, 0U);
    EXPECT_EQ(s.failures(), 3U);
    fault.mprotect = false;
    for (int i = 0; i < 100'000; ++i) {
        fault.mprotect = i % 3 == 0; // comes and goes
        if (void* const p = s.allocate(512, {})) std::memset(p, 1, 512);
        if (void* const p = s.allocate_dense(hot_class, 500, {})) std::memset(p, 1, 500);
        if (i % 1000 == 0) {
            if (void* const p = s.allocate(300'000, {})) std::memset(p, 1, 300'000);
        }
    }
    fault.mprotect = false;
    std::string what;
    EXPECT_TRUE(s.validate(&what)) << what;
    EXPECT_GT(s.counters(new_class).live_objects, 60'000U);
}

// However far creation gets before the address space ends, it fails with a reason and leaves
// nothing mapped.
TEST_F(space_limits, creation_without_address_space) {
    int maps = 0;
    for (; maps < 200; ++maps) {
        fault.mmaps_left = maps;
        std::string why;
        space* const s = space::create({.range_bytes = 16 * mib}, &why);
        fault.mmaps_left = -1;
        if (s != nullptr) {
            space::destroy(s);
            break;
        }
        ASSERT_FALSE(why.empty());
    }
    EXPECT_GT(maps, 10);
    EXPECT_LT(maps, 200);
}

// In a child, because a limit once lowered cannot be raised by everybody.
template <class Body>
int in_child(Body&& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(space_limits, a_small_address_space_gets_a_small_heap) {
    if (sanitized) GTEST_SKIP() << "the shadow needs terabytes";
    for (const std::size_t limit : {512 * mib, 2048 * mib, 16384 * mib}) {
        EXPECT_EQ(in_child([&] {
                      rlimit r{limit, limit};
                      if (setrlimit(RLIMIT_AS, &r) != 0) return 2;
                      if (os::address_space_limit() != limit) return 3;
                      std::string why;
                      space* const s = space::create({}, &why);
                      if (s == nullptr) return why.empty() ? 4 : 5;
                      if (s->range_bytes() * 4 > limit) return 6;
                      for (int i = 0; i < 10'000; ++i) {
                          void* const p = s->allocate(1000, {});
                          if (p == nullptr) return 7;
                          std::memset(p, 1, 1000);
                      }
                      return s->validate(nullptr) ? 0 : 8;
                  }),
                  0)
            << limit;
    }
    EXPECT_EQ(in_child([&] {
                  rlimit r{100 * mib, 100 * mib};
                  if (setrlimit(RLIMIT_AS, &r) != 0) return 2;
                  std::string why;
                  return space::create({}, &why) == nullptr && !why.empty() ? 0 : 3;
              }),
              0)
        << "less than the floor";
}

// A full disk means that objects cannot move to the file: nullptr, and what is there stays readable
// and writable. A child does it, so that a SIGBUS would be seen as one.
TEST_F(space_limits, a_full_disk_means_no_move) {
    EXPECT_EQ(in_child([&] {
                  std::string why;
                  space* const s =
                      space::create({.range_bytes = 64 * mib, .cold_directory = "/tmp"}, &why);
                  if (s == nullptr) return 2;
                  if (!s->file_backed(cold_class) || s->file_backed(hot_class)) return 3;
                  std::vector<char*> objects;
                  for (int i = 0; i < 10'000; ++i) {
                      if (i == 3'000) fault.fallocate = ENOSPC;
                      if (i == 8'000) fault.fallocate = 0;
                      char* const p = static_cast<char*>(s->allocate_dense(cold_class, 1000, {}));
                      if (p == nullptr) {
                          if (i < 3'000 || i >= 8'000) return 4;
                          continue;
                      }
                      std::memset(p, 'x', 1000);
                      objects.push_back(p);
                  }
                  if (s->failures() == 0 || objects.size() == 10'000) return 5;
                  // Returned storage must be had again before a run is used again.
                  for (std::size_t i = 0; i < 2'000; ++i) s->free(objects[i]);
                  if (s->decommit_free_memory() < 20 * run_bytes) return 6;
                  fault.fallocate = ENOSPC;
                  std::size_t got = 0;
                  while (s->allocate_dense(cold_class, 1000, {}) != nullptr) ++got;
                  if (got > 64 * mib / 1000 / 2) return 7;
                  fault.fallocate = 0;
                  for (int i = 0; i < 2'000; ++i) {
                      void* const p = s->allocate_dense(cold_class, 1000, {});
                      if (p == nullptr) return 8;
                      std::memset(p, 'y', 1000);
                  }
                  for (std::size_t i = 2'000; i < objects.size(); ++i) {
                      if (objects[i][0] != 'x' || objects[i][999] != 'x') return 9;
                  }
                  return s->validate(nullptr) ? 0 : 10;
              }),
              0);
}

// The same on a real, tiny file system, where that may be mounted.
TEST_F(space_limits, a_really_full_disk_means_no_move) {
    const std::string directory = testing::make_directory("full");
    const std::string mount = "mount -t tmpfs -o size=4m none " + directory + " 2>/dev/null";
    if (std::system(mount.c_str()) != 0) {
        testing::remove_empty_directory(directory);
        GTEST_SKIP() << "may not mount here";
    }
    EXPECT_EQ(in_child([&] {
                  std::string why;
                  space* const s =
                      space::create({.range_bytes = 64 * mib, .cold_directory = directory}, &why);
                  if (s == nullptr) return 2;
                  std::size_t bytes = 0;
                  while (void* const p = s->allocate_dense(cold_class, 1024, {})) {
                      std::memset(p, 1, 1024);
                      bytes += 1024;
                      if (bytes > 4 * mib) return 3;
                  }
                  if (bytes < 3 * mib) return 4;
                  void* const elsewhere = s->allocate_dense(hot_class, 1024, {});
                  return elsewhere != nullptr && s->validate(nullptr) ? 0 : 5;
              }),
              0);
    const std::string unmount = "umount " + directory;
    EXPECT_EQ(std::system(unmount.c_str()), 0);
    testing::remove_empty_directory(directory);
}

// Giving memory back may fail; it is tried again, and the memory is used again in any case.
TEST_F(space_limits, memory_that_cannot_be_returned_is_kept) {
    const owned_space owner = make_space({.range_bytes = 16 * mib, .cold_directory = "/tmp"});
    space& s = *owner;
    std::vector<void*> objects;
    for (const unsigned cls : {hot_class, cold_class}) {
        for (int i = 0; i < 1'000; ++i) objects.push_back(s.allocate_dense(cls, 1024, {}));
    }
    for (int i = 0; i < 1'000; ++i) objects.push_back(s.allocate(1024, {}));
    for (void* p : objects) s.free(p);
    fault.madvise = fault.punch = true;
    EXPECT_EQ(s.decommit_free_memory(), 0U);
    EXPECT_TRUE(s.validate(nullptr));
    void* const again = s.allocate_dense(cold_class, 16'000, {});
    ASSERT_NE(again, nullptr);
    std::memset(again, 1, 16'000);
    fault.madvise = fault.punch = false;
    EXPECT_GE(s.decommit_free_memory(), 2 * mib);
    EXPECT_TRUE(s.validate(nullptr));
}

TEST_F(space_limits, a_file_system_without_unnamed_files_is_named) {
    fault.opens_left = 0;
    fault.open_error = EOPNOTSUPP;
    std::string why;
    EXPECT_EQ(space::create({.range_bytes = 16 * mib, .cold_directory = "/tmp"}, &why), nullptr);
    EXPECT_NE(why.find("/tmp"), std::string::npos) << why;
    EXPECT_NE(why.find("not supported"), std::string::npos) << why;
    fault.opens_left = -1;
    fault.fallocate = EOPNOTSUPP;
    EXPECT_EQ(space::create({.range_bytes = 16 * mib, .cold_directory = "/tmp"}, &why), nullptr);
    EXPECT_NE(why.find("file space"), std::string::npos) << why;
}

TEST_F(space_limits, more_spaces_than_a_process_may_have) {
    std::vector<owned_space> spaces;
    for (unsigned i = 0; i < max_spaces - named_slots; ++i)
        spaces.push_back(make_space({.range_bytes = mib}));
    std::string why;
    EXPECT_EQ(space::create({.range_bytes = mib}, &why), nullptr);
    EXPECT_NE(why.find("too many"), std::string::npos);
    for (const owned_space& s : spaces) EXPECT_NE(s->allocate(64, {}), nullptr);
    spaces.pop_back();
    EXPECT_NE(make_space({.range_bytes = mib})->allocate(64, {}), nullptr);
}

} // namespace
} // namespace obase::heap
