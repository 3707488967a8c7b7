// SPDX-License-Identifier: MIT
//
// The point of a COLD that lies in a file, from end to end: objects that no thread touches leave
// memory, on any disk, without swap and without privileges, and come back unharmed.
#include "testing/checked_objects.hpp"
#include "testing/child_process.hpp"
#include "testing/mappings.hpp"
#include "testing/quiet_runtime.hpp"
#include "testing/test_directory.hpp"

#include "heap/sanitized.hpp"
#include "os/process.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace {

using obase::collect_result;
using obase::run_mode;
using obase::testing::checked_objects;
using obase::testing::mapping;
using obase::testing::mappings_of;
using obase::testing::require;
using obase::testing::run_in_child;

constexpr std::size_t mib = 1U << 20;

class cold_file : public ::testing::Test {
  protected:
    void SetUp() override {
        path = obase::testing::make_directory("cold");
        setenv("OBASE_COLD_BACKING", ("file:" + path).c_str(), 1);
        on_disk = obase::testing::is_on_disk(path);
    }
    void TearDown() override {
        unsetenv("OBASE_COLD_BACKING");
        obase::testing::remove_empty_directory(path);
    }

    // In the child.

    static void configure(run_mode mode) {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.mode = mode;
        settings.memory = "none"; // whatever limit the control group has
        settings.cold_threshold = 1;
        settings.controller = obase::controller_kind::fixed;
        require(obase::runtime::get().configure(settings).empty(), "configure");
    }
    static obase::statistics collect(int windows = 1) {
        for (; windows > 0; --windows)
            require(obase::runtime::get().collect_now() == collect_result::done, "done");
        return obase::runtime::get().statistics();
    }
    static void have_budget(obase::options& settings, std::uint64_t bytes) {
        require(settings.set("memory", std::to_string(bytes)).empty(), "an option");
        require(obase::runtime::get().configure(settings).empty(), "configure");
    }
    static void require_resident(std::uint64_t least, std::uint64_t most) {
        const std::uint64_t resident = obase::os::resident_bytes();
        if (resident > most || resident < least)
            std::fprintf(stderr, "resident: %zu, expected: %zu to %zu\n",
                         static_cast<std::size_t>(resident), static_cast<std::size_t>(least),
                         static_cast<std::size_t>(most));
        require(resident <= most, "down to the budget");
        require(resident >= least, "and no lower");
    }
    static bool in_file(const mapping& m) { return m.path.starts_with(path); }

    static inline std::string path;
    static inline bool on_disk = false;
};

class cold_file_and_fork : public cold_file, public ::testing::WithParamInterface<bool> {};

TEST_P(cold_file_and_fork, untouched_objects_leave_memory_and_come_back) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        checked_objects<> objects(40'000, 800);
        objects.grow(40'000);
        // Two windows below the target before anything is paged out; then everything but what a
        // hundredth of the objects holds in HOT.
        for (int window = 0; window < 3; ++window) {
            objects.verify(100);
            collect();
        }
        // Before the fork: freezing the file takes COLD out of the process's page tables.
        const std::uint64_t rss_before = obase::os::resident_bytes();
        if (GetParam()) {
            // The file is frozen now: its pages are mapped privately, and go all the same.
            const pid_t pid = fork();
            if (pid == 0) _exit(0);
            int status = -1;
            require(waitpid(pid, &status, 0) == pid && status == 0, "a fork");
        }
        auto now = collect(6);
        const auto live = now.heaps[2].live_bytes;
        require(now.moved("new", "cold") > 70'000 && live > 12 * mib, "objects are in COLD");
        require(now.pageout_allowed == 1 && now.hint_pageout_bytes >= live, "and were paged out");
        require(now.hint_written_bytes >= live, "after they were written");
        require(now.hint_failures == 0 && now.hints_stopped == 0, "without an error");
        const auto gone = mappings_of(in_file);
        require(!gone.found.empty() && gone.size >= live, "COLD is a mapping of the file");
        // After a fork, pages with guides that were visited are private, and there is no swap.
        require(gone.resident < live / (GetParam() ? 8 : 20), "its pages are not in the process");
        std::uint64_t cached = 0; // mincore sees what the kernel keeps of the file, too
        for (const mapping& m : gone.found)
            cached +=
                obase::os::resident_in(reinterpret_cast<const void*>(m.begin), m.end - m.begin);
        require(cached < live / 5, "nor in the page cache");
        require(now.heaps[2].extent_bytes < live + 4 * mib, "and there is little else");
        if (!obase::heap::sanitized)
            require(obase::os::resident_bytes() + live / 2 < rss_before,
                    "the process is smaller by what is in COLD");

        objects.verify(1); // reads everything back
        require(mappings_of(in_file).resident >= live * 9 / 10, "it is resident again");
        // A text whose node moved is found again in its new place, in the next window.
        for (int window = 0; window < 3; ++window) {
            now = collect();
            objects.verify(1);
        }
        require(now.moved("cold", "hot") > 70'000, "touched objects return to HOT");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_TRUE(child.messages().empty()) << child.err;
}

INSTANTIATE_TEST_SUITE_P(without_and_with_a_fork, cold_file_and_fork, ::testing::Bool());

// What is written into an object while its page is on disk is there after the page went out again.
TEST_F(cold_file, writes_to_cold_objects_are_not_lost) {
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        struct object {
            std::uint64_t id, value, rest[30];
        };
        std::vector<obase::guide<object>> objects;
        for (std::uint64_t i = 0; i < 20'000; ++i)
            objects.emplace_back(obase::make_managed<object>(object{i, 0, {}}));
        collect(6);
        for (std::uint64_t round = 1; round <= 3; ++round) {
            // observe: what is touched stays in COLD, so its pages go out dirty again
            obase::runtime::get().set_mode(run_mode::observe);
            {
                obase::scope s;
                for (std::uint64_t i = round; i < objects.size(); i += 3) objects[i]->value += i;
            }
            collect(2);
            obase::runtime::get().set_mode(run_mode::hint);
            collect(4);
            for (std::uint64_t i = 0; i < objects.size(); ++i) {
                std::uint64_t expected = 0;
                for (std::uint64_t r = 1; r <= round; ++r)
                    if (i >= r && (i - r) % 3 == 0) expected += i;
                obase::scope s;
                require(objects[i]->id == i && objects[i]->value == expected, "a write is lost");
            }
            collect(6);
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// What is free in the file is no storage: it stays below twice the live bytes, though what is out of memory is
// compacted only where more of it is free than not.
TEST_F(cold_file, stays_below_twice_what_lives_in_it) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        struct object {
            std::uint64_t id, rest[31];
        };
        constexpr std::size_t count = 100'000;
        std::vector<obase::guide<object>> objects;
        for (std::uint64_t i = 0; i < count; ++i)
            objects.emplace_back(obase::make_managed<object>(object{i, {}}));
        const auto storage = [] {
            std::uint64_t bytes = 0;
            for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
                std::error_code gone;
                if (!std::filesystem::read_symlink(entry, gone).string().starts_with(path))
                    continue;
                struct stat file{};
                if (stat(entry.path().c_str(), &file) == 0 && S_ISREG(file.st_mode))
                    bytes += static_cast<std::uint64_t>(file.st_blocks) * 512;
            }
            return bytes;
        };
        auto now = collect(6);
        const auto full = now.heaps[2].live_bytes;
        require(full > count * 250 && storage() >= full, "all is in the file");
        std::minstd_rand random(1);
        for (const unsigned freed : {30U, 30U, 50U, 60U, 80U}) { // percent of what is left
            for (auto& object : objects)
                if (random() % 100 < freed) object = {};
            now = collect(4);
            std::fprintf(stderr, "live %.1f MiB, in the file %.1f MiB\n",
                         static_cast<double>(now.heaps[2].live_bytes) / double{mib},
                         static_cast<double>(storage()) / double{mib});
            require(storage() <= 2 * now.heaps[2].live_bytes + 2 * mib,
                    "at most twice the live bytes");
        }
        require(now.heaps[2].live_bytes < full / 8, "little is left");
        for (std::uint64_t i = 0; i < count; ++i) {
            obase::scope s;
            require(!objects[i] || objects[i]->id == i, "and it is what it was");
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Of objects of 1 KiB four lie on three pages, or, on whole pages, three on each: a third more, which pays once they are
// on the disk, where an object on two pages is read by two faults, and not before.
TEST_F(cold_file, whole_pages_are_for_what_has_left) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        configure(run_mode::move);
        struct object {
            std::uint64_t id, rest[131]; // 1,056 bytes
        };
        std::vector<obase::guide<object>> objects;
        const auto grow = [&objects](std::size_t count) {
            while (count-- > 0)
                objects.emplace_back(
                    obase::make_managed<object>(object{std::uint64_t{objects.size()}, {}}));
        };
        const auto on_two_pages = [&objects](std::size_t first) {
            std::size_t found = 0;
            for (std::size_t i = first; i < objects.size(); ++i) {
                obase::scope s;
                require(objects[i]->id == i, "an object is what it was");
                const auto at = reinterpret_cast<std::uintptr_t>(objects[i].get());
                found += at / 4096 != (at + sizeof(object) - 1) / 4096;
            }
            return found;
        };
        constexpr std::size_t count = 20'000;
        grow(count);
        auto now = collect(4);
        require(now.heaps[2].live_objects == count, "all is in COLD");
        require(now.heaps[2].extent_bytes < now.heaps[2].live_bytes * 21 / 20, "with no gaps");
        obase::runtime::get().set_mode(run_mode::hint);
        now = collect(6);
        require(now.paged_out_bytes >= now.heaps[2].live_bytes * 9 / 10, "and has left");
        grow(count);
        now = collect(4);
        require(now.heaps[2].live_objects == 2 * count, "what comes later is in COLD, too");
        const std::size_t later = on_two_pages(count), earlier = on_two_pages(0) - later;
        std::fprintf(stderr, "on two pages: %zu, then %zu\n", earlier, later);
        require(earlier > count / 5, "what came first lies one behind the other");
        require(later < count / 200, "what comes later lies on whole pages");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST_F(cold_file, is_private_and_has_no_name) {
    const auto child = run_in_child([] {
        umask(0); // so that the mode is what was asked for
        configure(run_mode::move);
        checked_objects<> objects(1000);
        objects.grow(1000);
        int found = 0;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code ignored;
            if (!std::filesystem::read_symlink(entry, ignored).string().starts_with(path)) continue;
            struct stat file{};
            if (stat(entry.path().c_str(), &file) != 0 || !S_ISREG(file.st_mode)) continue;
            ++found;
            require((file.st_mode & 07777) == 0600, "mode 0600");
            require(file.st_nlink == 0, "no name");
            const int fd = std::stoi(entry.path().filename().string());
            require((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "closed on exec");
            require(linkat(AT_FDCWD, entry.path().c_str(), AT_FDCWD, (path + "/name").c_str(),
                           AT_SYMLINK_FOLLOW) != 0,
                    "and nothing can give it one");
        }
        require(found == 1, "one file");
        require(std::filesystem::is_empty(path), "the directory shows nothing");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// A program that is killed leaves nothing behind either: the kernel drops the file with its last
// user.
TEST_F(cold_file, is_gone_when_the_program_is_killed) {
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        checked_objects<> objects(5000);
        objects.grow(5000);
        collect(6);
        std::abort();
        return 0;
    });
    EXPECT_EQ(child.status, 1000 + SIGABRT) << child.err;
    EXPECT_TRUE(std::filesystem::is_empty(path));
}

// A core dump would bring all of it back.
TEST_F(cold_file, is_in_no_core_dump) {
    const auto child = run_in_child([] {
        configure(run_mode::move);
        checked_objects<> objects(2'000, 800);
        objects.grow(2'000);
        collect(4);
        std::ifstream smaps("/proc/self/smaps");
        bool of_file = false, found = false;
        for (std::string line; std::getline(smaps, line);) {
            const std::string first = line.substr(0, line.find(' '));
            if (!first.ends_with(':')) of_file = line.find(path) != std::string::npos;
            if (!of_file || !line.starts_with("VmFlags:")) continue;
            found = true;
            require(line.find(" dd") != std::string::npos, "not to be dumped");
        }
        require(found, "COLD lies in the file");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// The file is cut short, as if its disk had an error: one line and an exit code, and no wrong answer.
TEST_F(cold_file, that_cannot_be_read_ends_the_process_with_a_message) {
    if (obase::heap::sanitized) GTEST_SKIP() << "the sanitizer handles SIGBUS";
    const auto child = run_in_child([] {
        configure(run_mode::move);
        checked_objects<> objects(2'000, 800);
        objects.grow(2'000);
        collect(4);
        require(obase::runtime::get().statistics().heaps[2].live_objects > 1'900, "in COLD");
        bool cut = false;
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code gone;
            const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
            if (!target.starts_with(path)) continue;
            cut = ftruncate(std::stoi(entry.path().filename()), 0) == 0;
        }
        require(cut, "a shorter file");
        objects.verify(1);
        return 5; // not reached
    });
    EXPECT_EQ(child.status, 1) << child.err;
    EXPECT_NE(child.err.find("obase: the file under COLD in " + path + " cannot be read"),
              std::string::npos)
        << child.err;
}

// An error of another file is the program's affair.
TEST_F(cold_file, leaves_errors_of_other_files_as_they_were) {
    if (obase::heap::sanitized) GTEST_SKIP() << "the sanitizer handles SIGBUS";
    const auto child = run_in_child([] {
        configure(run_mode::move);
        checked_objects<> objects(100, 800);
        objects.grow(100);
        const int fd = open(path.c_str(), O_TMPFILE | O_RDWR, 0600);
        require(fd >= 0 && ftruncate(fd, 4096) == 0, "a file");
        void* const page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
        require(page != MAP_FAILED && ftruncate(fd, 0) == 0, "mapped, and cut short");
        return static_cast<int>(*static_cast<volatile char*>(page));
    });
    EXPECT_EQ(child.status, 1000 + SIGBUS) << child.err;
    EXPECT_EQ(child.err.find("cannot be read"), std::string::npos) << child.err;
}

// A program that has locked its memory keeps it: nothing leaves, nothing fails, and the reason is said.
TEST_F(cold_file, of_a_program_that_locks_its_memory_stays) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    if (geteuid() != 0) GTEST_SKIP() << "needs root, or a limit on locked memory above 1 GiB";
    if (obase::heap::sanitized || obase::heap::thread_sanitized)
        GTEST_SKIP() << "the sanitizer's shadow cannot be locked";
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        checked_objects<> objects(10'000, 800);
        objects.grow(10'000);
        require(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "mlockall");
        const auto now = collect(8);
        require(now.heaps[2].live_objects > 9'000, "objects move to COLD");
        require(now.paged_out_bytes == 0, "and stay in memory");
        objects.verify(1);
        bool said = false;
        for (const std::string& line : obase::runtime::get().self_check())
            said = said || line.find("no cold memory was freed: ") == 0;
        require(said, "a reason");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

obase::options settings_now() { return obase::runtime::get().settings(); }

// Some of COLD comes back in every window, more than the target allows. Then nothing leaves, but for the sake
// of a budget.
TEST_F(cold_file, over_budget_cold_memory_leaves_though_some_of_it_comes_back) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        obase::options settings = settings_now();
        settings.promotion_target = 0;
        settings.memory = "none";
        require(obase::runtime::get().configure(settings).empty(), "configure");
        checked_objects<> objects(80'000, 800);
        objects.grow(80'000);
        std::size_t turn = 2;
        const auto windows = [&](int count) {
            for (; count > 0; --count) {
                objects.verify(turn == 2 ? 500 : 501);
                turn = 5 - turn;
                collect();
            }
        };
        windows(8);
        obase::statistics now = obase::runtime::get().statistics();
        require(now.heaps[2].live_bytes > 30 * mib, "most is in COLD");
        require(now.hint_pageout_bytes == 0 && now.pageout_allowed == 0, "and stays");
        require(now.budget_bytes == 0, "no budget");
        const std::uint64_t before = obase::os::resident_bytes();
        require(settings.set("memory", std::to_string(before - 20 * mib)).empty(), "an option");
        require(obase::runtime::get().configure(settings).empty(), "configure");
        windows(4);
        now = obase::runtime::get().statistics();
        require(now.budget_bytes == before - 20 * mib && now.budget_used_bytes > 0, "a budget");
        // A sanitizer's shadow grows between the collector's look and this one.
        const std::size_t shadow = obase::heap::sanitized ? 2 * mib : 0;
        require(obase::os::resident_bytes() < before - 20 * mib + shadow, "memory falls below it");
        objects.verify(1);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Memory is there to be used: below the budget nothing leaves, however idle it is, and above it no more than is over it
// and a 64th of the budget. Both policies; the least idle stay.
TEST_F(cold_file, a_budget_is_used) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    if (obase::heap::sanitized) GTEST_SKIP() << "the sanitizer's shadow is charged, and grows";
    for (const char* policy : {"papers", "graded"}) {
        setenv("OBASE_POLICY", policy, 1);
        const auto child = run_in_child([] {
            configure(run_mode::hint);
            obase::options settings = settings_now();
            have_budget(settings, 1U << 30);
            checked_objects<> objects(80'000, 800);
            objects.grow(80'000);
            obase::statistics now = collect(16);
            require(now.heaps[now.heap_count - 2].live_bytes > 30 * mib, "all is cold");
            require(now.paged_out_bytes == 0 && now.pageout_allowed == 0, "nothing leaves");
            const std::uint64_t budget = obase::os::resident_bytes() - 20 * mib;
            have_budget(settings, budget);
            now = collect(12);
            require(now.paged_out_bytes >= 18 * mib, "what is over it leaves");
            require_resident(budget - budget / 64 - mib / 2, budget + mib / 2);
            const std::uint64_t left = now.paged_out_bytes;
            now = collect(8);
            require(now.paged_out_bytes <= left + mib / 2, "that is all");
            objects.verify(1);
            return 0;
        });
        EXPECT_EQ(child.status, 0) << policy << ": " << child.err;
    }
    unsetenv("OBASE_POLICY");
}

// Every object is touched once, then only some are: those that are idle leave for the sake of the budget, long before C_t
// windows have passed.
TEST_F(cold_file, over_budget_idle_objects_become_cold_before_their_time) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    if (obase::heap::sanitized) GTEST_SKIP() << "the sanitizer's shadow is charged, and grows";
    for (const char* policy : {"papers", "graded"}) {
        setenv("OBASE_POLICY", policy, 1);
        const auto child = run_in_child([] {
            configure(run_mode::hint);
            obase::options settings = settings_now();
            settings.cold_threshold = 32;
            require(obase::runtime::get().configure(settings).empty(), "configure");
            checked_objects<> objects(80'000, 800);
            objects.grow(80'000);
            obase::statistics now;
            for (int window = 0; window < 10; ++window) {
                objects.verify(window < 9 ? 1 : 8);
                now = collect();
            }
            const unsigned cold = static_cast<unsigned>(now.heap_count) - 2;
            require(now.heaps[cold].live_objects < 8'000, "next to nothing is cold");
            const std::uint64_t budget = obase::os::resident_bytes() - 20 * mib;
            have_budget(settings, budget);
            for (int window = 0; window < 16; ++window) {
                objects.verify(8);
                now = collect();
            }
            require_resident(0, budget + budget / 16);
            require(now.heaps[cold].live_bytes > 18 * mib, "since what is idle is in the file");
            require(now.heaps[cold].live_bytes < 28 * mib, "and no more");
            objects.verify(1);
            return 0;
        });
        EXPECT_EQ(child.status, 0) << policy << ": " << child.err;
    }
    unsetenv("OBASE_POLICY");
}

// At the limit there is room for half of the objects. Those in use are others than those in memory: they change places.
TEST_F(cold_file, at_the_limit_what_is_in_use_takes_the_place_of_what_is_not) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    if (obase::heap::sanitized) GTEST_SKIP() << "the sanitizer's shadow is charged, and grows";
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        obase::options settings = settings_now();
        checked_objects<> before(40'000, 800);
        before.grow(40'000);
        collect(5);
        settings.cold_threshold = 32; // from now on nothing becomes cold by its age
        require(obase::runtime::get().configure(settings).empty(), "configure");
        checked_objects<> after(40'000, 800);
        after.grow(40'000);
        for (int window = 0; window < 4; ++window) {
            after.verify(1);
            collect();
        }
        auto now = collect();
        require(now.heaps[1].live_objects > 39'000, "half are in HOT");
        require(now.heaps[2].live_objects > 39'000, "half in COLD");
        have_budget(settings, obase::os::resident_bytes());
        const auto came = now.moved("cold", "hot");
        for (int window = 0; window < 40; ++window) {
            before.verify(1);
            now = collect();
        }
        if (now.moved("cold", "hot") < came + 30'000)
            std::fprintf(stderr, "came back: %zu\n",
                         static_cast<std::size_t>(now.moved("cold", "hot") - came));
        require(now.moved("cold", "hot") >= came + 30'000, "what is in use comes back");
        require(now.heaps[2].live_objects > 30'000, "and the others made room");
        before.verify(1);
        after.verify(1);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// A disk wears. What moves into the file, or within it, is bounded by the option, window by window.
TEST_F(cold_file, no_more_is_written_into_it_than_may) {
    const auto child = run_in_child([] {
        configure(run_mode::move); // windows of a million seconds
        obase::options settings = settings_now();
        require(settings.set("cold_write_limit", "4").empty(), "an option");
        require(obase::runtime::get().configure(settings).empty(), "configure");
        checked_objects<> objects(20'000, 800);
        objects.grow(20'000);
        auto now = collect(4);
        const std::uint64_t allowed = 4'000'000;
        require(now.file_moved_bytes > allowed * 9 / 10, "a window's share is used");
        require(now.file_moved_bytes <= allowed + 4 * 600, "and no more");
        const auto skipped = now.write_limit_skips;
        require(skipped > 5'000, "the rest is counted");
        now = collect(3);
        require(now.file_moved_bytes <= allowed + 4 * 600, "a share takes its time");
        require(settings.set("cold_write_limit", "0").empty(), "an option");
        require(obase::runtime::get().configure(settings).empty(), "configure");
        const auto before = collect(1).write_limit_skips;
        now = collect(3);
        require(now.write_limit_skips == before, "no limit");
        require(now.heaps[2].live_objects > 19'000, "the rest moves");
        objects.verify(1);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// What is used again may stay in the file, where the kernel can drop it.
TEST_F(cold_file, at_the_limit_nothing_leaves_the_file) {
    if (!on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        configure(run_mode::hint);
        checked_objects<> objects(20'000, 800);
        objects.grow(20'000);
        collect(4);
        obase::options settings = settings_now();
        require(settings.set("memory", "1M").empty(), "an option");
        require(obase::runtime::get().configure(settings).empty(), "configure");
        const auto before = obase::runtime::get().statistics();
        require(before.heaps[2].live_objects > 19'000, "all is in COLD");
        objects.verify(1);
        auto now = collect();
        require(now.moved("cold", "hot") == before.moved("cold", "hot"), "and stays there");
        require(now.no_budget_skips > 19'000, "as the statistics say");
        settings.memory = "none";
        require(obase::runtime::get().configure(settings).empty(), "configure");
        objects.verify(1);
        now = collect();
        require(now.moved("cold", "hot") > before.moved("cold", "hot") + 19'000, "there is room");
        objects.verify(1);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_NE(child.err.find("memory is at its limit (OBASE_MEMORY)"), std::string::npos)
        << child.err;
}

} // namespace
