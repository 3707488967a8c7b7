// SPDX-License-Identifier: MIT
//
// Objects above 16 KiB, from end to end: untouched ones leave memory with COLD in a file and without swap,
// come back unharmed, share pages while they are in use, and move while threads read and write them. Typed over
// the protocols.
#include "testing/child_process.hpp"
#include "testing/mappings.hpp"
#include "testing/test_directory.hpp"
#include "testing/tier.hpp"

#include "heap/sanitized.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

#include <obase/obase.hpp>
#include <obase/word/atomic.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using obase::collect_result;
using obase::testing::mapping;
using obase::testing::mappings_of;
using obase::testing::require;
using obase::testing::run_in_child;

constexpr std::size_t kib = 1024, mib = 1U << 20;

struct small {
    std::uint64_t id;
};

// Every 512 bytes: number and version. Some words behind them are guides, of which the objects are small.
template <class Protocol>
struct block {
    static constexpr std::size_t step = 512, guides = 3;
    std::uint64_t words;
    obase::guide<small, Protocol> near[guides];

    explicit block(std::size_t bytes) : words(bytes / 8) {}
    using atomic = obase::word::native_atomic<std::uint64_t>;
    atomic& stamp(std::size_t i) {
        return *reinterpret_cast<atomic*>(reinterpret_cast<char*>(this) + (i + 1) * step);
    }
    std::size_t stamps() const { return words * 8 / step - 1; }
};

} // namespace

template <class Protocol>
struct obase::is_relocatable<block<Protocol>> : std::true_type {};

namespace {

template <class Protocol>
class large_objects : public ::testing::Test {
  protected:
    using scope = typename Protocol::scope;
    using guide = obase::guide<block<Protocol>, Protocol>;

    void SetUp() override {
        path = obase::testing::make_directory("large");
        setenv("OBASE_COLD_BACKING", ("file:" + path).c_str(), 1);
        on_disk = obase::testing::is_on_disk(path);
    }
    void TearDown() override {
        unsetenv("OBASE_COLD_BACKING");
        obase::testing::remove_empty_directory(path);
    }

    // In the child.

    static obase::runtime& runtime() { return obase::runtime::of<Protocol>(); }
    static void configure(const char* policy = "papers") {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.mode = obase::run_mode::hint;
        settings.memory = "none"; // whatever limit the control group has
        settings.cold_threshold = 1;
        settings.controller = obase::controller_kind::fixed;
        settings.policy = policy;
        settings.stall_target = 10; // windows are of milliseconds, and so may a fault be
        require(runtime().configure(settings).empty(), "configure");
    }
    static obase::statistics collect(int windows = 1) {
        for (; windows > 0; --windows)
            require(runtime().collect_now() == collect_result::done, "done");
        return runtime().statistics();
    }

    class population {
      public:
        void add(std::size_t count, std::size_t bytes) {
            for (; count > 0; --count) {
                auto made = obase::make_managed_with<block<Protocol>, Protocol>(
                    {.extra_bytes = bytes - sizeof(block<Protocol>)}, bytes);
                for (auto& g : made->near)
                    g = obase::make_managed<small, Protocol>(small{all_.size()});
                stamp(*made, all_.size(), 1);
                all_.emplace_back(std::move(made));
                versions_.push_back(1);
                bytes_ += bytes;
            }
        }
        void write(std::size_t n) {
            scope s;
            stamp(*all_[n], n, ++versions_[n]);
        }
        // All bytes that say something.
        void verify(std::size_t n) {
            scope s;
            block<Protocol>& b = *all_[n];
            for (std::size_t i = 0; i < b.stamps(); ++i)
                require(b.stamp(i).load_relaxed() == (n << 32 | versions_[n]),
                        "a stamp is of another object or version");
            for (const auto& g : b.near) require(g->id == n, "a guide in it leads elsewhere");
        }
        // What another thread may be writing.
        void read(std::size_t n) {
            scope s;
            block<Protocol>& b = *all_[n];
            for (std::size_t i = 0; i < b.stamps(); ++i)
                require(b.stamp(i).load_relaxed() >> 32 == n, "another object");
        }
        std::size_t size() const { return all_.size(); }
        std::size_t bytes() const { return bytes_; }

      private:
        static void stamp(block<Protocol>& b, std::size_t n, std::uint64_t version) {
            for (std::size_t i = 0; i < b.stamps(); ++i)
                b.stamp(i).store_relaxed(n << 32 | version);
        }

        std::vector<guide> all_;
        std::vector<std::uint64_t> versions_;
        std::size_t bytes_ = 0;
    };

    static bool in_file(const mapping& m) { return m.path.starts_with(path); }

    static inline std::string path;
    static inline bool on_disk = false;
};

using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(large_objects, protocols);

TYPED_TEST(large_objects, leave_memory_when_untouched_and_come_back) {
    using test = large_objects<TypeParam>;
    if (!test::on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        test::configure();
        typename test::population objects;
        for (int i = 0; i < 20; ++i) {
            objects.add(75, 20 * kib + 4);
            objects.add(5, 300 * kib);
        }
        const std::size_t count = objects.size();
        const auto use_some = [&] {
            for (std::size_t n = 0; n < count; n += 5) objects.verify(n);
        };
        for (int window = 0; window < 3; ++window) {
            use_some();
            test::collect();
        }
        const std::uint64_t before = obase::os::resident_bytes();
        auto now = obase::statistics();
        for (int window = 0; window < 6; ++window) {
            use_some();
            now = test::collect();
        }
        require(now.heap_name(3) == "large" && now.heaps[3].live_objects == 0, "none is in LARGE");
        require(now.heaps[3].extent_bytes == 0, "and none of their memory");
        const auto cold = now.heaps[2].live_bytes, hot = now.heaps[1].live_bytes;
        require(cold >= objects.bytes() * 3 / 4, "four fifths are in COLD");
        require(hot >= objects.bytes() / 6, "the rest is in HOT");
        require(now.heaps[1].extent_bytes <= hot + hot / 20 + mib, "where it shares pages");
        require(now.paged_out_bytes >= cold * 9 / 10, "what is cold has left memory");
        require(now.hint_failures == 0, "without an error");
        const auto gone = mappings_of(test::in_file);
        require(!gone.found.empty() && gone.resident < cold / 20, "its pages are not mapped");
        if (!obase::heap::sanitized && !obase::heap::thread_sanitized)
            require(obase::os::resident_bytes() < before, "the process has not grown");

        for (std::size_t n = 0; n < count; ++n) objects.verify(n); // reads everything back
        const auto moved = now.moved("cold", "hot");
        for (int window = 0; window < 8; ++window) {
            now = test::collect();
            for (std::size_t n = 0; n < count; ++n) objects.verify(n);
        }
        require(now.moved("cold", "hot") - moved >= count * 3 / 4, "they are in HOT again");
        require(now.moved("new", "hot") > 0 && now.no_room_skips == 0, "counted as of NEW");
        for (std::size_t n = 0; n < count; n += 3) objects.write(n);
        test::collect(6);
        for (std::size_t n = 0; n < count; ++n) objects.verify(n);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
    EXPECT_TRUE(child.messages().empty()) << child.err;
}

// A limit on writes of which two windows are less than the object has: it saves up. What it has passed through is
// not kept for it.
TYPED_TEST(large_objects, leave_memory_under_a_limit_on_writes) {
    using test = large_objects<TypeParam>;
    if (!test::on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        test::configure();
        obase::options settings = test::runtime().settings();
        settings.window_seconds = .05;
        settings.cold_write_limit = 8 * mib;
        require(test::runtime().configure(settings).empty(), "a limit");
        typename test::population objects;
        objects.add(1, 4 * mib);
        objects.add(1, 300 * kib);
        objects.verify(0);
        while (test::collect().heaps[2].live_bytes < objects.bytes())
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        const auto now = test::collect(2);
        require(now.heaps[0].extent_bytes + now.heaps[1].extent_bytes + now.heaps[3].extent_bytes <=
                    mib / 4,
                "and elsewhere nothing is left");
        objects.verify(0);
        objects.verify(1);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// With classes by rate they go where their rate says.
TYPED_TEST(large_objects, leave_memory_under_graded_too) {
    using test = large_objects<TypeParam>;
    if (!test::on_disk) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    const auto child = run_in_child([] {
        test::configure("graded");
        typename test::population objects;
        objects.add(1000, 20 * kib);
        for (int window = 0; window < 24; ++window) {
            for (std::size_t n = 0; n < objects.size(); n += 5) objects.verify(n);
            test::collect();
        }
        const auto now = test::runtime().statistics();
        require(now.heaps[8].live_bytes >= objects.bytes() * 3 / 4, "four fifths are in rate0");
        require(now.paged_out_bytes >= objects.bytes() / 2, "and most of it is out");
        require(now.heaps[9].live_objects == 0, "LARGE is empty");
        for (std::size_t n = 0; n < objects.size(); ++n) objects.verify(n);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// Threads write some of them and read others while a collector that never rests moves them, and some are born
// and die.
TYPED_TEST(large_objects, move_under_running_threads) {
    using test = large_objects<TypeParam>;
    const auto child = run_in_child([] {
        test::configure();
        typename test::population objects;
        objects.add(120, 20 * kib);
        objects.add(12, 300 * kib);
        objects.add(120, 40 * kib + 512);
        const std::size_t count = objects.size();
        obase::word::native_atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 2; ++t)
            threads.emplace_back([&, t] {
                // Each has its own objects, works on some of them, and goes on to others.
                std::uint64_t x = 88172645463325252u + t;
                for (std::uint64_t turn = 0; !stop.load_relaxed(); ++turn) {
                    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
                    const std::size_t base = turn / 512 * 37;
                    const std::size_t own = (base + x % 12) % (count / 2) * 2 + t;
                    if ((x >> 32) % 3 == 0)
                        objects.write(own);
                    else
                        objects.verify(own);
                    objects.read((base + (x >> 40) % 24) % count);
                    auto brief =
                        obase::make_bytes<TypeParam>(std::string(17'000 + turn % 9000, 'x'));
                    obase::retire(std::move(brief));
                }
            });
        const int windows = static_cast<int>(obase::testing::scaled_for_build(150, 3'000, 100'000));
        test::collect(windows);
        stop.store_seq_cst(true);
        for (auto& t : threads) t.join();
        const auto now = test::collect(4);
        for (std::size_t n = 0; n < count; ++n) objects.verify(n);
        require(now.moved("new", "hot") > 0 && now.moved("hot", "cold") > 0 &&
                    now.moved("cold", "hot") > 0,
                "they have moved");
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// The child of a fork has those in COLD as of the fork, and writes to its own.
TYPED_TEST(large_objects, in_a_file_are_a_childs_own) {
    using test = large_objects<TypeParam>;
    const auto child = run_in_child([] {
        test::configure();
        typename test::population objects;
        objects.add(200, 20 * kib);
        objects.add(10, 300 * kib);
        require(test::collect(6).heaps[2].live_objects >= objects.size(), "all are in COLD");
        const pid_t pid = fork();
        if (pid == 0) {
            for (std::size_t n = 0; n < objects.size(); n += 2) objects.write(n);
            require(test::runtime().start().empty(), "start");
            test::collect(5);
            for (std::size_t n = 0; n < objects.size(); ++n) objects.verify(n);
            _exit(0);
        }
        for (std::size_t n = 0; n < objects.size(); n += 3) objects.write(n);
        test::collect(5);
        for (std::size_t n = 0; n < objects.size(); ++n) objects.verify(n);
        int status = -1;
        require(waitpid(pid, &status, 0) == pid && status == 0, "the child");
        for (std::size_t n = 0; n < objects.size(); ++n) objects.verify(n);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

// A disk that is full: they stay in LARGE, are counted, and work.
TYPED_TEST(large_objects, without_room_stay_where_they_are) {
    using test = large_objects<TypeParam>;
    const auto child = run_in_child([] {
        test::configure();
        typename test::population objects;
        obase::os::memory_calls calls = obase::os::real_memory_calls();
        objects.add(100, 20 * kib);
        calls.fallocate = [](int, int, off_t, off_t) {
            errno = ENOSPC;
            return -1;
        };
        obase::os::use_memory_calls(&calls);
        auto now = test::collect(6);
        require(now.heaps[3].live_objects == 100 && now.no_room_skips >= 100, "no room");
        require(now.heaps[2].live_objects == 0, "none in COLD");
        for (std::size_t n = 0; n < 100; ++n) objects.verify(n);
        obase::os::use_memory_calls(nullptr);
        now = test::collect(6);
        require(now.heaps[3].live_objects == 0, "there is room again");
        for (std::size_t n = 0; n < 100; ++n) objects.verify(n);
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
