// SPDX-License-Identifier: MIT
//
// src/os against the running kernel, and its errors through replaced calls.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "os/memory.hpp"
#include "os/page_allocator.hpp"
#include "os/platform.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"

#include "testing/mappings.hpp"

namespace obase::os {
namespace {

constexpr std::size_t mib = 1U << 20;

TEST(os_memory, reserved_pages_become_usable_in_steps_and_go_back) {
    auto* const begin = static_cast<char*>(reserve(64 * mib, 16 * mib));
    ASSERT_NE(begin, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(begin) % (16 * mib), 0U);
    ASSERT_EQ(commit(begin, 2 * mib), 0);
    EXPECT_EQ(resident_in(begin, 2 * mib), 0U);
    std::memset(begin, 1, 2 * mib);
    EXPECT_EQ(resident_in(begin, 2 * mib), 2 * mib);
    ASSERT_EQ(advise(begin, mib, advice::dontneed), 0);
    EXPECT_EQ(resident_in(begin, 2 * mib), mib);
    EXPECT_TRUE(all_resident(begin + mib, 1));
    EXPECT_TRUE(all_resident(begin + mib + page_size - 1, 2)) << "two pages";
    EXPECT_FALSE(all_resident(begin + mib - 1, 2)) << "the first of them is not";
    EXPECT_FALSE(all_resident(begin + mib - page_size, 2 * page_size));
    EXPECT_TRUE(all_resident(begin + mib, 64 * page_size));
    EXPECT_FALSE(all_resident(begin + mib, 65 * page_size)) << "too many to ask about";
    EXPECT_EQ(begin[0], 0);
    EXPECT_EQ(begin[mib], 1);
    EXPECT_EQ(advise(begin, mib, advice::cold), 0);
    ASSERT_EQ(decommit(begin, 2 * mib), 0);
    ASSERT_EQ(commit(begin, page_size), 0);
    EXPECT_EQ(begin[0], 0);
    EXPECT_EQ(release(begin, 64 * mib), 0);
}

// What the kernel notes about the mapping that begins there: " nh", no huge pages; " hg", huge pages.
std::string flags_at(const char* begin) {
    const auto sum = testing::mappings_of([&](const testing::mapping& m) {
        return m.begin <= reinterpret_cast<std::uintptr_t>(begin) &&
               reinterpret_cast<std::uintptr_t>(begin) < m.end;
    });
    return sum.found.empty() ? "" : sum.found.front().flags;
}

// A machine whose pages are all huge would give 2 MiB to each byte of a sparse table, and keep what is decommitted
// of them.
TEST(os_memory, pages_stay_small_until_huge_ones_are_asked_for) {
    constexpr std::size_t huge = 2 * mib;
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0)
        GTEST_SKIP() << "no huge pages in this kernel";
    auto* const begin = static_cast<char*>(reserve(4 * huge, huge));
    ASSERT_NE(begin, nullptr);
    ASSERT_EQ(commit(begin, 2 * huge), 0);
    EXPECT_NE(flags_at(begin).find(" nh"), std::string::npos) << flags_at(begin);
    ASSERT_EQ(advise(begin, huge, advice::hugepage), 0);
    EXPECT_NE(flags_at(begin).find(" hg"), std::string::npos) << flags_at(begin);
    EXPECT_NE(flags_at(begin + huge).find(" nh"), std::string::npos) << flags_at(begin);
    ASSERT_EQ(decommit(begin, 2 * huge), 0);
    ASSERT_EQ(commit(begin, 2 * huge), 0);
    EXPECT_NE(flags_at(begin).find(" nh"), std::string::npos) << flags_at(begin);
    EXPECT_EQ(release(begin, 4 * huge), 0);
}

TEST(os_memory, errors_are_values_and_errno_stays) {
    errno = 4711;
    EXPECT_EQ(commit(reinterpret_cast<void*>(page_size), page_size), ENOMEM);
    int fd = -1;
    EXPECT_EQ(open_temporary_file("/nowhere/at/all", &fd), ENOENT);
    EXPECT_EQ(reserve(SIZE_MAX, page_size), nullptr);
    EXPECT_EQ(reserve(SIZE_MAX / 2, page_size), nullptr);
    EXPECT_EQ(errno, 4711);
}

TEST(os_memory, an_interrupted_call_is_repeated) {
    static int left;
    left = 3;
    memory_calls calls = real_memory_calls();
    calls.mprotect = [](void* at, std::size_t bytes, int protection) {
        if (left-- > 0) {
            errno = EINTR;
            return -1;
        }
        return real_memory_calls().mprotect(at, bytes, protection);
    };
    void* const begin = reserve(page_size, page_size);
    use_memory_calls(&calls);
    EXPECT_EQ(commit(begin, page_size), 0);
    use_memory_calls(nullptr);
    EXPECT_EQ(left, -1);
    release(begin, page_size);
}

TEST(os_memory, a_file_lies_beneath_memory) {
    int fd = -1;
    ASSERT_EQ(open_temporary_file("/tmp", &fd), 0);
    ASSERT_EQ(grow_file(fd, mib), 0);
    ASSERT_EQ(grow_file(fd, page_size), 0) << "never shrinks";
    EXPECT_EQ(lseek(fd, 0, SEEK_END), static_cast<off_t>(mib));
    ASSERT_EQ(allocate_file(fd, 0, mib), 0);
    auto* const begin = static_cast<char*>(reserve(mib, page_size));
    ASSERT_EQ(map_file(begin, mib, fd, 0), 0);
    std::memset(begin, 'a', mib);
    EXPECT_EQ(write_back_file(fd, 0, mib, true), 0);
    EXPECT_EQ(drop_file_cache(fd, 0, mib), 0);
    EXPECT_EQ(begin[mib - 1], 'a');
    ASSERT_EQ(punch_file(fd, 0, page_size), 0);
    EXPECT_EQ(begin[0], 0);
    EXPECT_EQ(begin[page_size], 'a');
    release(begin, mib);
    close_file(fd);
}

// What was written is still there, also what is only in the page cache; what is written afterwards
// does not reach the file.
TEST(os_memory, a_file_mapping_becomes_private_in_place) {
    int fd = -1;
    ASSERT_EQ(open_temporary_file("/tmp", &fd), 0);
    ASSERT_EQ(grow_file(fd, 2 * mib), 0);
    ASSERT_EQ(allocate_file(fd, 0, 2 * mib), 0);
    auto* const begin = static_cast<char*>(reserve(mib, page_size));
    ASSERT_EQ(map_file(begin, mib, fd, mib), 0);
    std::memset(begin, 'a', mib);
    ASSERT_EQ(make_file_private(begin, mib, fd, mib), 0);
    EXPECT_EQ(begin[0], 'a');
    begin[0] = 'b';
    char byte = 0;
    EXPECT_EQ(pread(fd, &byte, 1, static_cast<off_t>(mib)), 1);
    EXPECT_EQ(byte, 'a');
    EXPECT_EQ(begin[0], 'b');
    EXPECT_EQ(begin[mib - 1], 'a');
    EXPECT_NE(make_file_private(begin, mib, -1, mib), 0);
    EXPECT_EQ(begin[0], 'b') << "a failure changes nothing";
    release(begin, mib);
    close_file(fd);
}

TEST(os_memory, the_file_is_the_owners_alone) {
    int fd = -1;
    ASSERT_EQ(open_temporary_file("/tmp", &fd), 0);
    EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    struct stat facts{};
    ASSERT_EQ(fstat(fd, &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0600U);
    EXPECT_EQ(facts.st_nlink, 0U) << "no name anywhere";
    close_file(fd);
}

TEST(os_process, readings_make_sense) {
    process_memory memory;
    ASSERT_TRUE(read_process_memory(&memory));
    EXPECT_GT(memory.rss, mib / 2);
    EXPECT_LE(memory.pss, memory.rss);
    EXPECT_GT(resident_bytes(), mib / 2);
    machine here;
    ASSERT_TRUE(read_machine(&here));
    EXPECT_GT(here.ram_bytes, 64 * mib);
    EXPECT_LE(here.swap_free, here.swap_total);
    EXPECT_EQ(can_page_out(here), here.swap_free > 0);
    EXPECT_GT(here.max_map_count, 1000U);
    EXPECT_GE(here.overcommit_memory, 0);
    EXPECT_LE(here.overcommit_memory, 2);
    EXPECT_GT(address_space_limit(), 64 * mib);
}

TEST(os_platform, the_barrier_works_or_says_that_it_does_not) {
    EXPECT_EQ(native_platform::membarrier(), native_platform::has_membarrier());
    membarrier_fail_for_tests(true);
    EXPECT_FALSE(native_platform::has_membarrier());
    EXPECT_FALSE(native_platform::membarrier());
    membarrier_fail_for_tests(false);
}

TEST(os_platform, a_broken_invariant_ends_the_process_with_its_name) {
    native_platform::check(true, "unused");
    EXPECT_DEATH(native_platform::check(false, "the sky fell"), "the sky fell");
}

TEST(os_thread, sleeps_at_least_as_long_as_told) {
    const std::uint64_t begin = monotonic_ns(), cpu = thread_cpu_ns();
    sleep_ns(2'000'000);
    EXPECT_GE(monotonic_ns() - begin, 2'000'000U);
    EXPECT_LT(thread_cpu_ns() - cpu, 2'000'000U);
}

// Of the scheduler's parameters only the length of a turn changes, and only in the thread that asks.
TEST(os_thread, short_turns_change_nothing_else) {
    struct parameters {
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime, deadline, period;
    };
    const auto current = [] {
        parameters p{};
        EXPECT_EQ(syscall(SYS_sched_getattr, 0, &p, sizeof p, 0), 0);
        return p;
    };
    const parameters before = current();
    std::thread([&] {
        prefer_short_turns();
        const parameters now = current();
        EXPECT_EQ(now.policy, before.policy);
        EXPECT_EQ(now.nice, before.nice);
        EXPECT_EQ(now.priority, before.priority);
        // Before 6.12 the kernel has no such thing, and says 0.
        if (before.runtime != 0) {
            EXPECT_EQ(now.runtime, 100'000U);
        }
    }).join();
    EXPECT_EQ(current().runtime, before.runtime);
}

bool is_blocked(int signal) {
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    return sigismember(&now, signal) == 1;
}

TEST(os_thread, signals_stay_blocked_while_what_blocks_them_moves) {
    ASSERT_FALSE(is_blocked(SIGTERM));
    {
        std::optional<blocked_signals> kept;
        {
            blocked_signals first;
            kept.emplace(std::move(first));
        }
        EXPECT_TRUE(is_blocked(SIGTERM));
        const blocked_signals last = std::move(*kept);
        kept.reset();
        EXPECT_TRUE(is_blocked(SIGTERM));
    }
    EXPECT_FALSE(is_blocked(SIGTERM));
}

TEST(os_thread, signals_are_blocked_for_a_while_and_in_the_threads_made_meanwhile) {
    std::thread made;
    {
        const blocked_signals all;
        EXPECT_TRUE(is_blocked(SIGTERM));
        made = std::thread([] {
            EXPECT_TRUE(is_blocked(SIGTERM));
            EXPECT_TRUE(is_blocked(SIGUSR1));
        });
    }
    EXPECT_FALSE(is_blocked(SIGTERM));
    EXPECT_FALSE(is_blocked(SIGUSR1));
    made.join();
}

TEST(os_thread, a_thread_has_a_name_a_number_and_a_clock) {
    std::thread([] {
        name_thread("os_test thread");
        EXPECT_NE(thread_id(), static_cast<std::uint32_t>(getpid()));
        const std::uint64_t before = thread_cpu_ns();
        volatile unsigned work = 0;
        while (thread_cpu_ns() - before < 1'000'000) work = work + 1;
        EXPECT_LT(before, thread_cpu_ns());
    }).join();
}

word::native_atomic<int> hook_calls;
void counting_hook() noexcept { hook_calls.fetch_add_relaxed(1); }

TEST(os_thread, exit_hooks_run_in_threads_that_asked) {
    ASSERT_TRUE(add_exit_hook(counting_hook));
    ASSERT_TRUE(add_exit_hook(counting_hook)) << "twice is once";
    std::thread([] { EXPECT_TRUE(arm_exit_hooks()); }).join();
    EXPECT_EQ(hook_calls.load_relaxed(), 1);
    std::thread([] {}).join();
    EXPECT_EQ(hook_calls.load_relaxed(), 1);
}

// Contents, and the addresses that they had.
TEST(os_memory, pages_are_taken_away_and_put_back) {
    constexpr std::size_t bytes = 16 * page_size;
    auto* const home = static_cast<char*>(reserve(3 * bytes, page_size));
    auto* const alias = static_cast<char*>(reserve(bytes, page_size));
    ASSERT_EQ(commit(home, 3 * bytes), 0);
    std::memset(home, 7, 3 * bytes);
    ASSERT_EQ(take_pages(home + bytes, alias, bytes), 0);
    for (std::size_t i = 0; i < bytes; i += 512) ASSERT_EQ(alias[i], 7);
    EXPECT_EQ(resident_in(home + bytes, bytes), 0U);
    EXPECT_EQ(home[bytes - 1], 7);
    EXPECT_EQ(home[2 * bytes], 7);
    alias[0] = 8;
    // Neither readable nor writable, for the system neither.
    EXPECT_DEATH(home[bytes] = 1, "");
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(write(ends[1], home + bytes, 1), -1);
    EXPECT_EQ(errno, EFAULT);
    const pid_t child = fork(); // where they are as they are here
    if (child == 0) _exit(write(ends[1], home + bytes, 1) == -1 && alias[0] == 8 ? 0 : 1);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    close(ends[0]);
    close(ends[1]);

    auto* const scratch = static_cast<char*>(reserve(bytes, page_size));
    ASSERT_EQ(commit(scratch, bytes), 0);
    std::memcpy(scratch, alias, bytes);
    ASSERT_EQ(put_pages(scratch, home + bytes, bytes), 0);
    EXPECT_EQ(home[bytes], 8);
    EXPECT_EQ(home[bytes + 1], 7);

    // Again; and accessible without contents.
    ASSERT_EQ(decommit(alias, bytes), 0);
    ASSERT_EQ(take_pages(home + bytes, alias, bytes), 0);
    ASSERT_EQ(recommit_taken(home + bytes, bytes), 0);
    for (std::size_t i = 0; i < bytes; i += 512) ASSERT_EQ(home[bytes + i], 0);
    home[bytes] = 1;
    release(home, 3 * bytes);
    release(alias, bytes);
}

// Without mremap's flag, as before Linux 5.7, nothing has happened.
TEST(os_memory, pages_that_cannot_be_taken_stay) {
    auto* const home = static_cast<char*>(reserve(page_size, page_size));
    auto* const alias = static_cast<char*>(reserve(page_size, page_size));
    ASSERT_EQ(commit(home, page_size), 0);
    home[0] = 7;
    memory_calls failing = real_memory_calls();
    failing.mremap = [](void*, std::size_t bytes, std::size_t, int, void* to) -> void* {
        munmap(to, bytes); // as the kernel may
        errno = EINVAL;
        return reinterpret_cast<void*>(-1);
    };
    use_memory_calls(&failing);
    EXPECT_EQ(take_pages(home, alias, page_size), EINVAL);
    use_memory_calls(nullptr);
    EXPECT_EQ(home[0], 7);
    home[0] = 8;
    EXPECT_EQ(mprotect(alias, page_size, PROT_NONE), 0) << "it is reserved";
    use_memory_calls(&failing);
    EXPECT_EQ(put_pages(home, alias, page_size), EINVAL);
    use_memory_calls(nullptr);
    EXPECT_EQ(home[0], 8);
    EXPECT_EQ(mprotect(alias, page_size, PROT_NONE), 0) << "it is reserved";
    failing.mprotect = [](void*, std::size_t, int protection) {
        errno = ENOMEM;
        return protection == PROT_NONE ? 0 : -1;
    };
    EXPECT_DEATH(
        {
            use_memory_calls(&failing);
            take_pages(home, alias, page_size);
        },
        "does not give the pages");
    release(home, page_size);
    release(alias, page_size);
}

// What is long is mapped, and goes back; what is short is the allocator's.
TEST(os_memory, long_blocks_of_a_vector_are_mapped) {
    static std::atomic<std::size_t> mapped{0};
    memory_calls counting = real_memory_calls();
    counting.mmap = [](void* at, std::size_t bytes, int access, int flags, int file, off_t offset) {
        mapped += bytes;
        return real_memory_calls().mmap(at, bytes, access, flags, file, offset);
    };
    counting.munmap = [](void* at, std::size_t bytes) {
        mapped -= bytes;
        return real_memory_calls().munmap(at, bytes);
    };
    use_memory_calls(&counting);
    {
        std::vector<std::uint64_t, page_allocator<std::uint64_t>> list;
        constexpr std::size_t least = page_allocator<std::uint64_t>::least_bytes / 8;
        list.reserve(least - 1);
        EXPECT_EQ(mapped.load(), 0u);
        for (std::uint64_t i = 0; i < least + 1; ++i) list.push_back(i);
        EXPECT_EQ(mapped.load() % page_size, 0u);
        EXPECT_GE(mapped.load(), list.capacity() * 8);
        EXPECT_LT(mapped.load(), list.capacity() * 8 + page_size);
        for (std::uint64_t i = 0; i < least + 1; ++i) ASSERT_EQ(list[i], i);
    }
    EXPECT_EQ(mapped.load(), 0u);
    // A mapping cannot be divided: its pages go all the same.
    page_allocator<char> pages;
    char* const kept = pages.allocate(1 << 20);
    std::memset(kept, 1, 1 << 20);
    counting.munmap = [](void*, std::size_t) {
        errno = ENOMEM;
        return -1;
    };
    use_memory_calls(&counting);
    pages.deallocate(kept, 1 << 20);
    EXPECT_EQ(kept[1 << 19], 0);
    counting.mmap = [](void*, std::size_t, int, int, int, off_t) {
        errno = ENOMEM;
        return MAP_FAILED;
    };
    use_memory_calls(&counting);
    EXPECT_THROW(static_cast<void>(pages.allocate(1 << 20)), std::bad_alloc);
    char* const few = pages.allocate(8); // not mapped
    pages.deallocate(few, 8);
    use_memory_calls(nullptr);
    EXPECT_THROW(static_cast<void>(page_allocator<std::uint64_t>().allocate(SIZE_MAX / 4)),
                 std::bad_array_new_length);
}

} // namespace
} // namespace obase::os
