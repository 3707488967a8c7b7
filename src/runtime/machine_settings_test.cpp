// SPDX-License-Identifier: MIT
//
// The runtime on a machine that is set up otherwise: memory that is never overcommitted, swap in
// compressed memory. These settings belong to the whole machine, so the test asks for
// OBASE_TEST_MACHINE=1 and root, takes a lock, makes the change short and mild, and leaves the
// restoring to a process that survives a crash of the test. Anything else is skipped with its
// reason.
#include "testing/checked_objects.hpp"
#include "testing/child_process.hpp"
#include "testing/mappings.hpp"
#include "testing/quiet_runtime.hpp"

#include "heap/sanitized.hpp"
#include "os/process.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <functional>
#include <string>
#include <sys/file.h>
#include <sys/swap.h>
#include <sys/wait.h>
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

constexpr std::uint64_t mib = 1U << 20;
constexpr std::uint64_t gib = 1U << 30;

std::string read_setting(const std::string& path) {
    std::ifstream file(path);
    std::string text;
    std::getline(file, text);
    return text;
}
bool write_setting(const std::string& path, const std::string& value) {
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const bool ok = write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
    close(fd);
    return ok;
}
std::uint64_t meminfo(const std::string& key) {
    std::ifstream file("/proc/meminfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(key + ":")) return std::stoull(line.substr(key.size() + 1)) * 1024;
    return 0;
}

// Runs `undo` in a process of its own, when end() is called or when this process dies, however.
class undo_at_end {
  public:
    explicit undo_at_end(std::function<void()> undo) {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) return;
        guardian_ = fork();
        if (guardian_ == 0) {
            setsid(); // not to be killed with the test's process group
            for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE})
                std::signal(signal, SIG_IGN);
            close(ends[1]);
            char ignored;
            while (read(ends[0], &ignored, 1) < 0 && errno == EINTR) {
            }
            undo();
            _exit(0);
        }
        close(ends[0]);
        write_end_ = ends[1];
    }
    undo_at_end(const undo_at_end&) = delete;
    undo_at_end& operator=(const undo_at_end&) = delete;
    ~undo_at_end() {
        close(write_end_);
        if (guardian_ > 0) waitpid(guardian_, nullptr, 0);
    }
    bool ready() const { return guardian_ > 0; }

  private:
    pid_t guardian_ = -1;
    int write_end_ = -1;
};

class machine : public ::testing::Test {
  protected:
    void SetUp() override {
        const char* allowed = std::getenv("OBASE_TEST_MACHINE");
        if (allowed == nullptr || std::string(allowed) != "1")
            GTEST_SKIP()
                << "changes settings of the whole machine; OBASE_TEST_MACHINE=1 permits it";
        if (geteuid() != 0) GTEST_SKIP() << "needs root";
        if (obase::heap::sanitized) GTEST_SKIP() << "the sanitizer's shadow needs overcommit";
        lock_ = open("/tmp/obase-machine-settings.lock", O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        if (lock_ < 0 || flock(lock_, LOCK_EX | LOCK_NB) != 0)
            GTEST_SKIP() << "another test is changing the machine's settings";
    }
    void TearDown() override {
        if (lock_ >= 0) close(lock_);
    }

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

    int lock_ = -1;
};

// vm.overcommit_memory=2: every writable page is charged against a limit, and MAP_NORESERVE is
// ignored. The limit is set so that programs of ordinary size do not notice, but a heap that
// charged what it reserves would.
TEST_F(machine, that_never_overcommits) {
    const std::string mode = "/proc/sys/vm/overcommit_memory",
                      kib = "/proc/sys/vm/overcommit_kbytes",
                      ratio = "/proc/sys/vm/overcommit_ratio";
    const std::string mode_before = read_setting(mode), ratio_before = read_setting(ratio),
                      kib_before = read_setting(kib);
    if (mode_before != "0" && mode_before != "1")
        GTEST_SKIP() << "overcommit_memory is " << mode_before;
    const std::uint64_t limit = meminfo("Committed_AS") + 64 * gib;
    undo_at_end restore([&] {
        write_setting(mode, mode_before);
        // Each of the two sets the other to 0.
        if (kib_before != "0")
            write_setting(kib, kib_before);
        else
            write_setting(ratio, ratio_before);
    });
    ASSERT_TRUE(restore.ready());
    if (!write_setting(kib, std::to_string(limit / 1024)) || !write_setting(mode, "2"))
        GTEST_SKIP() << "may not write " << mode;
    const auto child = run_in_child([&] {
        const std::uint64_t charged_before = meminfo("Committed_AS");
        configure(run_mode::move);
        checked_objects<> objects(3000);
        objects.grow(3000);
        for (int window = 0; window < 3; ++window) {
            objects.verify(2);
            collect();
        }
        const auto now = collect();
        require(obase::testing::moves_of(now) > 1000 && now.no_room_skips == 0, "objects move");
        require(now.foreign_objects == 0, "the heaps are there");
        // Others come and go meanwhile; the reservation is hundreds of GiB.
        require(meminfo("Committed_AS") < charged_before + 32 * gib, "reserving is not charged");
        objects.verify(1);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    const auto said = child.messages();
    ASSERT_EQ(said.size(), 1u) << child.err;
    EXPECT_NE(said[0].find("vm.overcommit_memory is 2"), std::string::npos) << child.err;
}

// transparent_hugepage/enabled is always: heaps and tables have small pages nevertheless, so what objects leave is given
// back.
TEST_F(machine, whose_pages_are_all_huge) {
    const std::string enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
    const std::string all = read_setting(enabled);
    const std::size_t from = all.find('['), to = all.find(']');
    if (from == std::string::npos || to == std::string::npos) GTEST_SKIP() << "no huge pages here";
    const std::string before = all.substr(from + 1, to - from - 1);
    undo_at_end restore([&] { write_setting(enabled, before); });
    ASSERT_TRUE(restore.ready());
    if (!write_setting(enabled, "always")) GTEST_SKIP() << "may not write " << enabled;
    const auto child = run_in_child([] {
        constexpr std::size_t size = 8 * mib;
        auto* const other = static_cast<char*>(::aligned_alloc(2 * mib, size));
        std::memset(other, 1, size);
        const auto holds = [](const void* address) {
            const auto at = reinterpret_cast<std::uintptr_t>(address);
            return [at](const mapping& m) { return m.begin <= at && at < m.end; };
        };
        const bool works = mappings_of(holds(other)).huge != 0;
        configure(run_mode::move);
        checked_objects<> objects(20'000, 800);
        objects.grow(20'000);
        require(mappings_of(holds(objects[1000].peek())).huge == 0, "NEW has small pages");
        collect(6);
        require(obase::runtime::get().statistics().heaps[2].live_objects > 15'000, "in COLD");
        std::uint64_t huge = 0;
        const auto foreign = holds(other);
        for (const mapping& m :
             mappings_of([&](const mapping& one) { return !foreign(one); }).found)
            if (obase::runtime::get().heap_of(reinterpret_cast<const void*>(m.begin)) >= 0)
                huge += mappings_of([&](const mapping& one) { return one.begin == m.begin; }).huge;
        require(huge == 0, "all heaps have");
        objects.verify(1);
        std::free(other);
        return works ? 0 : 77;
    });
    if (child.status == 77) GTEST_SKIP() << "no huge page is to be had";
    EXPECT_EQ(child.status, 0) << child.err;
}

// Swap in a zram device of our own: paging anonymous COLD out frees memory.
TEST_F(machine, with_compressed_swap) {
    const std::string number = read_setting("/sys/class/zram-control/hot_add");
    if (number.empty()) GTEST_SKIP() << "no zram in this kernel";
    const std::string device = "/dev/zram" + number, control = "/sys/block/zram" + number;
    undo_at_end restore([&] {
        swapoff(device.c_str()); // fails if it was never on
        write_setting(control + "/reset", "1");
        write_setting("/sys/class/zram-control/hot_remove", number);
    });
    ASSERT_TRUE(restore.ready());
    constexpr std::uint64_t size = 128 * mib;
    if (!write_setting(control + "/disksize", std::to_string(size)))
        GTEST_SKIP() << "no zram memory";
    // The header that mkswap writes: version, last page, bad pages; the signature ends the page.
    std::vector<char> header(4096);
    const std::uint32_t fields[] = {1, static_cast<std::uint32_t>(size / 4096 - 1), 0};
    std::memcpy(&header[1024], fields, sizeof fields);
    std::memcpy(&header[4096 - 10], "SWAPSPACE2", 10);
    const int fd = open(device.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) GTEST_SKIP() << "cannot open " << device;
    ASSERT_EQ(write(fd, header.data(), header.size()), 4096);
    ASSERT_EQ(fsync(fd), 0);
    close(fd);
    if (swapon(device.c_str(), 0) != 0) GTEST_SKIP() << "swapon: " << std::strerror(errno);

    const auto child = run_in_child([] {
        configure(run_mode::hint);
        checked_objects<> objects(40'000, 800);
        objects.grow(40'000);
        auto now = collect(3);
        const std::uint64_t rss_before = obase::os::resident_bytes();
        now = collect(6);
        const auto live = now.heaps[2].live_bytes;
        require(live > 12 * mib && now.hint_pageout_bytes >= live, "COLD was paged out");
        // The objects' addresses tell where COLD is.
        const auto somewhere = reinterpret_cast<std::uintptr_t>(objects[1000].peek());
        const auto cold = mappings_of(
            [&](const mapping& m) { return m.begin <= somewhere && somewhere < m.end; });
        require(cold.swapped > live * 9 / 10, "its pages are in swap");
        require(cold.resident < live / 5, "and not in memory");
        require(obase::os::resident_bytes() + live / 2 < rss_before, "the process is smaller");
        objects.verify(1);
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

} // namespace
