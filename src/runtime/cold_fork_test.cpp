// SPDX-License-Identifier: MIT
//
// fork with COLD in a file, from end to end: other threads exchange objects and write to them, the
// collector moves them, and every child finds what there was at its fork, can go on with a runtime
// and a file of its own, and reaches no other process. Typed over the protocols.
#include "testing/child_process.hpp"
#include "testing/mappings.hpp"

#include "heap/sanitized.hpp"
#include "os/memory.hpp"
#include "testing/test_directory.hpp"
#include "testing/tier.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <set>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using obase::collect_result;
using obase::testing::child_result;
using obase::testing::mapping;
using obase::testing::mappings_of;
using obase::testing::require;
using obase::testing::run_in_child;

// Made anew by each exchange, and never changed afterwards.
struct payload {
    std::uint64_t id, version, copy, rest[5];
};

template <class Protocol>
struct node {
    obase::guide<payload, Protocol> child;
    // Written in place. The writer of a node counts `begun` before and `ended` after it.
    std::atomic<std::uint64_t> id, begun, value[4], ended;
};

} // namespace

template <class Protocol>
struct obase::is_relocatable<node<Protocol>> : std::true_type {};

namespace {

template <class Protocol>
class cold_fork : public ::testing::Test {
  protected:
    using scope = typename Protocol::scope;
    using guide = obase::guide<node<Protocol>, Protocol>;

    void SetUp() override {
        path = obase::testing::make_directory("cold");
        setenv("OBASE_COLD_BACKING", ("file:" + path).c_str(), 1);
    }
    void TearDown() override {
        unsetenv("OBASE_COLD_BACKING");
        obase::testing::remove_empty_directory(path);
    }

    // In the process under test, which is a child of the test's.

    static obase::runtime& runtime() { return obase::runtime::of<Protocol>(); }

    struct population {
        std::vector<guide> nodes;

        explicit population(std::size_t count) {
            nodes.reserve(count);
            for (std::size_t i = 0; i < count; ++i) {
                // Some are large.
                const std::size_t extra = i % 64 == 3 ? 20'000 : i % 512 == 4 ? 150'000 : 0;
                auto made =
                    obase::make_managed_with<node<Protocol>, Protocol>({.extra_bytes = extra});
                {
                    scope s;
                    made->id = i;
                    for (auto& v : made->value) v = 0;
                    made->begun = made->ended = 0;
                    made->child = make_payload(i, 0);
                }
                nodes.emplace_back(std::move(made));
            }
        }
        static auto make_payload(std::uint64_t id, std::uint64_t version) {
            return obase::make_managed<payload, Protocol>(
                payload{id, version, ~(id + version), {}});
        }
        void exchange(std::size_t i, std::uint64_t version) {
            scope s;
            obase::retire(nodes[i]->child.exchange(make_payload(i, version)));
        }
        void write(std::size_t i) {
            scope s;
            node<Protocol>& n = *nodes[i];
            const std::uint64_t next = n.begun + 1;
            n.begun = next;
            for (auto& v : n.value) v = next;
            n.ended = next;
        }
        // No object is torn or another's, and each node is at one moment of its history: the words
        // that were written are those of one version or, from some word on, the one before.
        bool whole() const {
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                scope s;
                const node<Protocol>& n = *nodes[i];
                const payload* p = n.child.get();
                if (n.id != i || p == nullptr) return false;
                if (p->id != i || p->copy != ~(i + p->version)) return false;
                std::uint64_t expected = n.begun;
                for (const auto& v : n.value) {
                    if (v != expected && v + 1 == expected) --expected;
                    if (v != expected) return false;
                }
                if (n.ended != expected && n.ended + 1 != expected) return false;
                if (n.ended + 1 < n.begun) return false;
            }
            return true;
        }
        std::uint64_t sum() const {
            std::uint64_t sum = 0;
            for (const guide& g : nodes) {
                scope s;
                sum += g->child->version + g->ended;
            }
            return sum;
        }
    };

    static void configure() {
        obase::options settings = obase::options::from_environment();
        settings.window_seconds = 1e6;
        settings.mode = obase::run_mode::hint;
        settings.memory = "none"; // whatever limit the control group has
        settings.cold_threshold = 1;
        settings.controller = obase::controller_kind::fixed;
        require(runtime().configure(settings).empty(), "configure");
    }
    static obase::statistics collect(int windows) {
        for (; windows > 0; --windows)
            require(runtime().collect_now() == collect_result::done, "a window");
        return runtime().statistics();
    }
    static bool ended_well(pid_t child) {
        int status = 0;
        require(waitpid(child, &status, 0) == child, "waitpid");
        if (status != 0)
            std::fprintf(stderr, "a child ended with %x\n", static_cast<unsigned>(status));
        return status == 0;
    }
    static bool in_file(const mapping& m) { return m.path.starts_with(path); }

    static inline std::string path;
};

using protocols = ::testing::Types<obase::arming, obase::atc>;
TYPED_TEST_SUITE(cold_fork, protocols);

TYPED_TEST(cold_fork, every_child_has_a_snapshot_and_a_life_of_its_own) {
    using test = cold_fork<TypeParam>;
    const child_result result = run_in_child([] {
        test::configure();
        const std::size_t count = obase::heap::sanitized ? 4'000 : 20'000;
        typename test::population all(count);
        require(test::collect(6).heaps[2].live_objects > count, "objects are in COLD");
        std::atomic<bool> stop{false};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < 3; ++t) {
            threads.emplace_back([&, t] {
                std::size_t i = t;
                for (std::uint64_t version = 1; !stop; ++version) {
                    // Each thread has its own nodes; most of them rest for some windows.
                    i = (i + 3 * 677) % (count / 3) * 3 + t;
                    if (i % 16 != version / 4096 % 16) continue;
                    if (version % 2 != 0)
                        all.exchange(i, version);
                    else
                        all.write(i);
                }
            });
        }
        std::thread collector([&] {
            while (!stop) (void)test::runtime().collect_now();
        });
        const std::uint64_t forks = obase::testing::scaled(24, 300, 3'000);
        for (std::uint64_t f = 0; f < forks; ++f) {
            const pid_t child = fork();
            if (child == 0) {
                require(all.whole(), "the child has a snapshot");
                const std::uint64_t sum = all.sum();
                if (f % 4 == 1) {
                    // A grandchild, before there is a collector.
                    const pid_t grandchild = fork();
                    if (grandchild == 0) _exit(all.whole() && all.sum() == sum ? 0 : 1);
                    require(test::ended_well(grandchild), "the grandchild has it too");
                }
                if (f % 4 == 2) {
                    require(test::runtime().start().empty(), "start");
                    const auto before = test::runtime().statistics();
                    for (std::size_t i = 0; i < count; i += 5) all.exchange(i, 1);
                    for (std::size_t i = 0; i < count; i += 7) all.write(i);
                    const auto after = test::collect(5);
                    require(after.moved("new", "cold") > before.moved("new", "cold"),
                            "objects move here");
                    require(after.no_room_skips == before.no_room_skips, "into a file");
                    require(all.whole(), "and are right");
                    const std::uint64_t now = all.sum();
                    const pid_t grandchild = fork();
                    if (grandchild == 0) {
                        require(test::runtime().start().empty(), "start in the grandchild");
                        test::collect(3);
                        _exit(all.whole() && all.sum() == now ? 0 : 1);
                    }
                    for (std::size_t i = 0; i < count; i += 2) all.write(i);
                    require(test::ended_well(grandchild), "the grandchild has a life of its own");
                    test::runtime().stop();
                }
                require(f % 4 == 2 || all.sum() == sum, "no thread writes here");
                _exit(0);
            }
            require(child > 0, "fork");
            require(test::ended_well(child), "a child");
        }
        stop = true;
        for (auto& t : threads) t.join();
        collector.join();
        require(all.whole(), "the parent has all of its own");
        test::collect(4);
        require(all.whole(), "after more windows, too");
        require(test::runtime().statistics().hint_failures == 0, "hints worked");
        return 0;
    });
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(result.messages().empty()) << result.err;
}

// Snapshot after snapshot, as a database takes them, while the objects change slowly: the collector
// empties old files, and what is on disk stays in proportion to what lives.
TYPED_TEST(cold_fork, snapshots_without_end_need_a_bounded_number_of_files) {
    using test = cold_fork<TypeParam>;
    const child_result result = run_in_child([] {
        test::configure();
        const std::size_t count = 4'000;
        typename test::population all(count);
        test::collect(6);
        const std::uint64_t forks = obase::testing::scaled(50, 300, 3'000);
        for (std::uint64_t f = 0; f < forks; ++f) {
            const pid_t child = fork();
            if (child == 0) _exit(all.whole() ? 0 : 1);
            require(test::ended_well(child), "a child");
            for (std::size_t i = f % 25; i < count; i += 25) all.exchange(i, f);
            const auto now = test::collect(1);
            if (f % 10 != 9) continue;
            require(all.whole(), "the parent");
            const auto& cold = now.heaps[2];
            require(cold.extent_bytes < 4 * cold.live_bytes + (40U << 20),
                    "little is kept for nothing");
            std::set<std::string> files;
            for (const mapping& m : mappings_of(test::in_file).found) files.insert(m.path);
            require(files.size() <= 16, "few files");
        }
        return 0;
    });
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(result.messages().empty()) << result.err;
}

// Where the snapshot cannot be had, one message says so, in the child; another program can be
// executed, guides that are not in COLD work, and no collector runs. The parent notices nothing.
TYPED_TEST(cold_fork, no_snapshot_is_said_and_no_corruption) {
    using test = cold_fork<TypeParam>;
    const child_result result = run_in_child([] {
        test::configure();
        typename test::population all(1'000);
        test::collect(6);
        obase::os::memory_calls calls = obase::os::real_memory_calls();
        calls.mmap_in_place = [](void*, std::size_t, int, int, int, off_t) {
            errno = ENOMEM;
            return MAP_FAILED;
        };
        obase::os::use_memory_calls(&calls);
        const pid_t child = fork();
        obase::os::use_memory_calls(nullptr);
        if (child == 0) {
            require(test::runtime().start().find("left the objects in COLD") != std::string::npos,
                    "no collector");
            auto made = test::population::make_payload(1, 2);
            {
                typename test::scope s;
                require(made->copy == ~std::uint64_t{3}, "a new object");
            }
            const pid_t reader = fork();
            if (reader == 0) {
                std::signal(SIGSEGV, SIG_DFL);
                _exit(all.whole() ? 0 : 1);
            }
            int status = 0;
            waitpid(reader, &status, 0);
            require(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "no access");
            execl("/bin/true", "true", static_cast<char*>(nullptr));
            _exit(1);
        }
        for (std::size_t i = 0; i < 1'000; i += 3) all.exchange(i, 5);
        require(test::ended_well(child), "the child executes another program");
        test::collect(3);
        require(all.whole(), "the parent goes on");
        const pid_t next = fork();
        if (next == 0) _exit(all.whole() ? 0 : 1);
        require(test::ended_well(next), "the next child has a snapshot");
        return 0;
    });
    EXPECT_EQ(result.status, 0) << result.err;
    ASSERT_EQ(result.messages().size(), 1u) << result.err;
    EXPECT_NE(result.messages()[0].find("cannot be accessed in the child"), std::string::npos);
}

} // namespace
