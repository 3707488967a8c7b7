// SPDX-License-Identifier: MIT
//
// A program that loads more than its budget of memory waits for the collector, and stays near the budget; one
// whose memory cannot leave waits a few times, and goes on. In modes and places where waiting would be wrong nobody
// does.
#include "testing/child_process.hpp"
#include "testing/test_directory.hpp"

#include "heap/sanitized.hpp"
#include "os/process.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using obase::collect_result;
using obase::run_mode;
using obase::testing::require;
using obase::testing::run_in_child;

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t budget = 48 * mib;
constexpr std::uint64_t load = 2 * budget;

struct object {
    std::uint64_t id;
    std::uint64_t rest[127]; // 1 KiB
};
constexpr std::size_t objects_of_load = load / sizeof(object);

template <class Protocol>
using guides = std::vector<obase::guide<object, Protocol>>;

class backpressure : public ::testing::Test {
  protected:
    void SetUp() override {
        path = obase::testing::make_directory("press");
        if (!obase::testing::is_on_disk(path)) GTEST_SKIP() << "/tmp is memory itself (tmpfs)";
    }
    void TearDown() override { obase::testing::remove_empty_directory(path); }

    // In the child. No window begins by itself.
    template <class Protocol = obase::arming>
    static obase::options settings(const std::string& memory,
                                   const std::string& policy = "papers") {
        obase::options made = obase::options::from_environment();
        made.window_seconds = 1e6;
        made.mode = run_mode::hint;
        made.policy = policy;
        made.memory = memory;
        made.cold_backing = "file:" + path;
        return made;
    }
    template <class Protocol = obase::arming>
    static obase::runtime& configured(const obase::options& made) {
        auto& runtime = obase::runtime::of<Protocol>();
        require(runtime.configure(made).empty(), "configure");
        return runtime;
    }
    // Statistics are of the end of a window.
    template <class Protocol = obase::arming>
    static obase::statistics seen() {
        auto& runtime = obase::runtime::of<Protocol>();
        require(runtime.collect_now() == collect_result::done, "a window");
        return runtime.statistics();
    }
    static std::string text_of(std::uint64_t bytes) { return std::to_string(bytes); }

    static inline std::string path;
};

template <class Protocol>
void add(guides<Protocol>& all, std::size_t count) {
    for (const std::size_t end = all.size() + count; all.size() < end;) {
        auto made = obase::make_managed<object, Protocol>();
        made->id = all.size();
        all.emplace_back(std::move(made));
    }
}

template <class Protocol>
void check(const guides<Protocol>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
        const obase::basic_scope<Protocol> s;
        require(all[i]->id == i, "an object is what it was");
    }
}

void report(const char* what, const obase::statistics& now) {
    std::fprintf(
        stderr, "%s: peak %.1f MiB, now %.1f MiB, %llu early windows, %llu waits of %.3f s\n", what,
        static_cast<double>(obase::os::peak_resident_bytes()) / double{mib},
        static_cast<double>(obase::os::resident_bytes()) / double{mib},
        static_cast<unsigned long long>(now.early_windows),
        static_cast<unsigned long long>(now.allocation_waits), now.allocation_wait_seconds);
}

// What a program has that loads, between the end of a window and the look that asks for the next, and while that one
// moves: a sixth of the budget.
constexpr std::uint64_t slack = budget / 6;

// How objects are loaded.
enum class way { plainly, in_scopes, and_touched };

template <class Protocol>
int loads(const obase::options& made, way how, bool held_back) {
    auto& runtime = obase::runtime::of<Protocol>();
    require(runtime.configure(made).empty(), "configure");
    guides<Protocol> all;
    all.reserve(objects_of_load);
    while (all.size() < objects_of_load) {
        if (how == way::plainly) {
            add(all, 1);
            continue;
        }
        const obase::basic_scope<Protocol> s;
        add(all, 1);
        if (how == way::and_touched) all.back()->rest[0] = 1;
    }
    const std::uint64_t peak = obase::os::peak_resident_bytes();
    require(runtime.collect_now() == collect_result::done, "a window");
    const obase::statistics now = runtime.statistics();
    report(made.policy.c_str(), now);
    if (held_back) {
        require(peak <= budget + slack, "the peak is near the budget");
        require(now.early_windows != 0 && now.allocation_waits != 0, "it waited");
        require(now.allocation_wait_seconds > 0 &&
                    now.allocation_wait_seconds <
                        static_cast<double>(now.allocation_waits) * 60, // a wait is one of .1 s
                "and for how long is said");
    } else {
        require(peak >= load, "all of it was resident");
        require(now.early_windows == 0 && now.allocation_waits == 0, "nobody waited");
    }
    check(all);
    return 0;
}

template <class Body>
void passes(Body&& body, bool resident_matters = true) {
    if (resident_matters && (obase::heap::sanitized || obase::heap::thread_sanitized))
        GTEST_SKIP() << "the shadow is resident too";
    const auto child = run_in_child(body);
    EXPECT_EQ(child.status, 0) << child.err;
    std::fputs(child.err.c_str(), stderr);
}

TEST_F(backpressure, holds_a_load_near_its_budget_papers) {
    passes([] { return loads<obase::arming>(settings(text_of(budget)), way::plainly, true); });
}
TEST_F(backpressure, holds_a_load_near_its_budget_graded) {
    passes([] {
        return loads<obase::arming>(settings(text_of(budget), "graded"), way::plainly, true);
    });
}
TEST_F(backpressure, holds_a_load_near_its_budget_papers_atc) {
    passes([] { return loads<obase::atc>(settings(text_of(budget)), way::plainly, true); });
}
TEST_F(backpressure, holds_a_load_near_its_budget_graded_atc) {
    passes(
        [] { return loads<obase::atc>(settings(text_of(budget), "graded"), way::plainly, true); });
}
// The thread waits at the end of the scope.
TEST_F(backpressure, holds_a_load_in_scopes) {
    passes([] { return loads<obase::arming>(settings(text_of(budget)), way::in_scopes, true); });
}
TEST_F(backpressure, holds_a_load_in_scopes_atc) {
    passes([] { return loads<obase::atc>(settings(text_of(budget)), way::in_scopes, true); });
}
// What was touched goes to HOT first.
TEST_F(backpressure, holds_a_load_of_touched_objects_papers) {
    passes([] { return loads<obase::arming>(settings(text_of(budget)), way::and_touched, true); });
}
TEST_F(backpressure, holds_a_load_of_touched_objects_graded) {
    passes([] {
        return loads<obase::arming>(settings(text_of(budget), "graded"), way::and_touched, true);
    });
}

TEST_F(backpressure, without_a_budget_nobody_waits) {
    passes([] { return loads<obase::arming>(settings("none"), way::plainly, false); });
}
TEST_F(backpressure, in_modes_that_move_nothing_nobody_waits) {
    for (const run_mode mode : {run_mode::observe, run_mode::off})
        passes([mode] {
            obase::options made = settings(text_of(budget));
            made.mode = mode;
            auto& runtime = configured(made);
            guides<obase::arming> all;
            add(all, objects_of_load);
            require(obase::os::peak_resident_bytes() >= load, "all of it was resident");
            made.mode = run_mode::move;
            made.memory = "none";
            require(runtime.configure(made).empty(), "another mode");
            const obase::statistics now = seen();
            require(now.early_windows == 0 && now.allocation_waits == 0, "nobody waited");
            // From now on somebody does.
            made.memory = text_of(budget);
            require(runtime.configure(made).empty(), "a budget");
            add(all, 4 * mib / sizeof(object));
            require(seen().allocation_waits != 0, "it waited");
            return 0;
        });
}

// Nothing can leave, so waiting does not help. It is given up after a few windows, and tried at greater and
// greater distances.
TEST_F(backpressure, a_program_that_uses_all_of_its_memory_waits_a_few_times) {
    passes(
        [] {
            auto& runtime = configured(settings(text_of(1 * mib)));
            guides<obase::arming> all;
            for (std::uint64_t i = 0; i < 256 * mib / sizeof(object); ++i)
                all.emplace_back(
                    obase::make_managed_with<object>({.never_cold = true}, object{i, {}}));
            (void)runtime;
            const obase::statistics now = seen();
            report("all of it in use", now);
            require(now.allocation_waits != 0, "it waited");
            // Eight for distances of 2 to 256 MiB, and those before the fourth window ended.
            require(now.allocation_waits <= 48, "and went on");
            return 0;
        },
        false);
}

// What the program uses for ever and what it replaces are more than its budget together. Moving out what it made last
// makes room only until it makes the next, so it does not wait for that for long.
TEST_F(backpressure, a_program_that_replaces_what_it_has_goes_on) {
    passes([] {
        configured(settings(text_of(budget)));
        guides<obase::arming> kept;
        for (std::uint64_t i = 0; i < (budget - budget / 6) / sizeof(object); ++i)
            kept.emplace_back(
                obase::make_managed_with<object>({.never_cold = true}, object{i, {}}));
        constexpr std::size_t replaced = budget / 4 / sizeof(object);
        guides<obase::arming> ring;
        add(ring, replaced);
        const auto seconds = [] {
            return std::chrono::duration<double>(
                       std::chrono::steady_clock::now().time_since_epoch())
                .count();
        };
        const obase::statistics before = seen();
        const double began = seconds();
        for (std::size_t i = 0; i < 64 * replaced; ++i) {
            auto made = obase::make_managed<object>();
            made->id = i % replaced;
            ring[i % replaced] = std::move(made);
        }
        const double passed = seconds() - began;
        const obase::statistics now = seen();
        report("replaced", now);
        const double waited = now.allocation_wait_seconds - before.allocation_wait_seconds;
        std::fprintf(stderr, "waited %.2f of %.2f s\n", waited, passed);
        require(now.allocation_waits > before.allocation_waits, "it waited");
        // wait_credit; a wait is .1 s, unless the thread that ends it has no processor.
        require(waited <= 2 + .1 * passed + 1, "and went on");
        check(ring);
        return 0;
    });
}

// When there was no hope for long, and then half of the memory is given up, the next load waits again.
TEST_F(backpressure, a_load_after_a_time_without_hope_is_held_back) {
    passes([] {
        configured(settings(text_of(budget)));
        {
            guides<obase::arming> stuck;
            for (std::uint64_t i = 0; i < 2 * budget / sizeof(object); ++i)
                stuck.emplace_back(
                    obase::make_managed_with<object>({.never_cold = true}, object{i, {}}));
        }
        const obase::statistics before = seen(); // gives their memory back
        report("without hope", before);
        seen(); // and this one sees that there is room
        guides<obase::arming> all;
        add(all, objects_of_load);
        report("a load", seen());
        require(seen().allocation_waits >= before.allocation_waits + 4, "it waited");
        require(obase::os::resident_bytes() <= budget + slack, "and is near the budget");
        check(all);
        return 0;
    });
}

// Several threads load; each waits for itself.
TEST_F(backpressure, holds_the_load_of_many_threads) {
    passes([] {
        configured(settings(text_of(budget)));
        constexpr unsigned count = 4;
        std::vector<guides<obase::arming>> all(count);
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < count; ++t)
            threads.emplace_back([&all, t] { add(all[t], objects_of_load / count); });
        for (std::thread& thread : threads) thread.join();
        report("four threads", seen());
        require(obase::os::peak_resident_bytes() <= budget + slack + count * mib,
                "the peak is near the budget");
        for (const auto& some : all) check(some);
        return 0;
    });
}

// A scope that does not end: what the window would move waits for it, and whoever is in it goes on.
TEST_F(backpressure, in_a_scope_nobody_waits) {
    passes(
        [] {
            configured(settings(text_of(1 * mib)));
            guides<obase::arming> all;
            {
                const obase::scope s;
                add(all, 32 * mib / sizeof(object));
            }
            const obase::statistics now = seen();
            report("in a scope", now);
            require(now.early_windows != 0, "a window was asked for");
            require(now.allocation_waits <= 1, "at the end of the scope at most");
            check(all);
            return 0;
        },
        false);
}

// The other protocol's collector waits for its scopes, and a thread that is in one waits for neither.
TEST_F(backpressure, in_a_scope_of_the_other_protocol_nobody_waits) {
    passes(
        [] {
            configured(settings(text_of(1 * mib)));
            configured<obase::atc>(settings<obase::atc>("none"));
            auto other = obase::make_managed<object, obase::atc>();
            guides<obase::arming> all;
            {
                const obase::basic_scope<obase::atc> s;
                add(all, 16 * mib / sizeof(object));
                other->id = 1;
            }
            const obase::statistics now = seen();
            report("in another protocol's scope", now);
            require(now.early_windows != 0, "a window was asked for");
            require(now.allocation_waits == 0, "nobody waited");
            add(all, 16 * mib / sizeof(object));
            require(seen().allocation_waits != 0, "outside of it somebody does");
            check(all);
            return 0;
        },
        false);
}

// Its destructor makes objects.
struct refilling {
    guides<obase::arming>* to;
    explicit refilling(guides<obase::arming>* where) : to(where) {}
    ~refilling() { add(*to, 2 * mib / sizeof(object)); }
};

} // namespace

template <>
struct obase::is_relocatable<refilling> : std::true_type {};

namespace {

// A destructor may run anywhere, in the collector, too, which would wait for itself.
TEST_F(backpressure, in_destructors_nobody_waits) {
    passes(
        [] {
            obase::options made = settings("none");
            auto& runtime = configured(made);
            guides<obase::arming> all;
            std::vector<obase::owner<refilling>> owners;
            for (int i = 0; i < 16; ++i) owners.push_back(obase::make_managed<refilling>(&all));
            made.memory = text_of(1 * mib);
            require(runtime.configure(made).empty(), "a budget");
            for (auto& one : owners) obase::retire(std::move(one));
            require(runtime.drain(600).left == 0, "all destructors ran");
            require(all.size() == 16 * 2 * mib / sizeof(object), "all destructors ran");
            const obase::statistics now = seen();
            report("in destructors", now);
            require(now.allocation_waits == 0, "nobody waited");
            check(all);
            return 0;
        },
        false);
}

int status_of(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

// A child of a fork has no collector, until it starts one.
TEST_F(backpressure, after_a_fork_there_is_no_collector_to_wait_for) {
    passes(
        [] {
            configured(settings(text_of(1 * mib)));
            guides<obase::arming> all;
            std::atomic<bool> done{false};
            std::thread loader([&] {
                guides<obase::arming> own;
                while (!done.load()) {
                    add(own, mib / sizeof(object));
                    if (own.size() > 64 * mib / sizeof(object)) own.clear();
                }
            });
            for (int round = 0; round < 8; ++round) {
                add(all, 4 * mib / sizeof(object));
                const pid_t child = fork();
                if (child == 0) {
                    add(all, 16 * mib / sizeof(object));
                    check(all);
                    if (!obase::runtime::get().start().empty()) _exit(3);
                    // A child of its own has no other thread that could wait.
                    const auto waits = seen().allocation_waits;
                    const pid_t grandchild = fork();
                    add(all, 16 * mib / sizeof(object));
                    check(all);
                    if (grandchild == 0) {
                        if (!obase::runtime::get().start().empty()) _exit(4);
                        _exit(seen().allocation_waits == waits ? 0 : 5);
                    }
                    _exit(status_of(grandchild) == 0 ? 0 : 6);
                }
                const int status = status_of(child);
                require(status == 0, ("the child is well: " + std::to_string(status)).c_str());
                check(all);
            }
            done = true;
            loader.join();
            return 0;
        },
        false);
}

// A control group below that of this process, with a limit. It is gone with the object.
class memory_group {
  public:
    explicit memory_group(std::uint64_t limit) {
        std::ifstream groups("/proc/self/cgroup");
        for (std::string line; path_.empty() && std::getline(groups, line);) {
            const std::size_t first = line.find(':');
            const std::size_t second = line.find(':', first + 1);
            const std::string controllers = line.substr(first + 1, second - first - 1);
            const std::string group = line.substr(second + 1) + "/obase-press-";
            if (controllers == "memory")
                make("/sys/fs/cgroup/memory" + group, "memory.limit_in_bytes", limit);
            else if (controllers.empty())
                make("/sys/fs/cgroup" + group, "memory.max", limit);
        }
    }
    memory_group(const memory_group&) = delete;
    memory_group& operator=(const memory_group&) = delete;
    ~memory_group() {
        if (!path_.empty()) rmdir(path_.c_str());
    }
    bool made() const { return !path_.empty(); }
    // The calling process.
    bool join() const { return write(path_ + "/cgroup.procs", "0"); }

  private:
    static bool write(const std::string& file, const std::string& text) {
        std::ofstream out(file);
        out << text << std::flush;
        return out.good();
    }
    void make(const std::string& prefix, const std::string& file, std::uint64_t limit) {
        const std::string here = prefix + std::to_string(getpid());
        if (mkdir(here.c_str(), 0755) != 0) return;
        if (std::filesystem::exists(here + "/" + file) &&
            write(here + "/" + file, std::to_string(limit)))
            path_ = here;
        else
            rmdir(here.c_str());
    }
    std::string path_;
};

// What the kernel ends without a budget survives with one: the default, .9 of the group's limit.
TEST_F(backpressure, a_load_of_twice_the_limit_of_its_group_survives) {
    if (obase::heap::sanitized || obase::heap::thread_sanitized)
        GTEST_SKIP() << "the shadow is resident too";
    if (geteuid() != 0) GTEST_SKIP() << "needs root to make a control group";
    obase::os::machine here;
    if (!obase::os::read_machine(&here) || here.swap_total != 0)
        GTEST_SKIP() << "there is swap, so nothing is killed";
    const memory_group group(load / 2);
    if (!group.made()) GTEST_SKIP() << "no control group could be made";
    for (const char* policy : {"papers", "graded"})
        for (const char* memory : {"none", "cgroup"}) {
            const auto child = run_in_child([&] {
                require(group.join(), "in the group");
                configured(settings(memory, policy));
                guides<obase::arming> all;
                all.reserve(objects_of_load);
                add(all, objects_of_load);
                report(policy, seen());
                check(all);
                return 0;
            });
            EXPECT_EQ(child.status, memory == std::string("none") ? 1000 + SIGKILL : 0)
                << policy << ", " << memory << ": " << child.err;
            std::fputs(child.err.c_str(), stderr);
        }
}

// Threads that wait when the collector is stopped go on, and do not wait again.
TEST_F(backpressure, a_stop_ends_all_waits) {
    passes(
        [] {
            auto& runtime = configured(settings(text_of(1 * mib)));
            std::atomic<bool> done{false};
            std::vector<std::thread> threads;
            for (int t = 0; t < 3; ++t)
                threads.emplace_back([&done] {
                    while (!done.load()) {
                        guides<obase::arming> own;
                        add(own, 8 * mib / sizeof(object));
                    }
                });
            for (int round = 0; round < 20; ++round) {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                runtime.stop();
                require(runtime.start().empty(), "it starts again");
            }
            runtime.stop();
            done = true;
            for (std::thread& thread : threads) thread.join();
            return 0;
        },
        false);
}

} // namespace
