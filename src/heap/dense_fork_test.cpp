// SPDX-License-Identifier: MIT
//
// fork with a class in a file (dense.hpp): parent and child have the objects as of the fork,
// whichever thread writes at that moment and whatever either process does afterwards; nothing is
// copied, storage is bounded, and what fails is no corruption. The tests play the collector;
// src/runtime/cold_fork_test.cpp has the real one.
#include "heap/space.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "heap/sanitized.hpp"
#include "testing/failing_calls.hpp"
#include "testing/test_directory.hpp"
#include "testing/tier.hpp"

namespace obase::heap {
namespace {

constexpr unsigned cold_class = 2;

constexpr std::size_t mib = 1U << 20;

using testing::fault;

// An object of the tests: its number, a version, and both again in every word behind.
struct object {
    std::uint64_t* words = nullptr;
    std::size_t size = 0;

    void write(std::uint64_t version) {
        for (std::size_t i = 1; i < size / 8; ++i) words[i] = words[0] ^ version;
    }
    // The version; ~0 when the object is none.
    std::uint64_t read(std::uint64_t number) const {
        if (words[0] != number) return ~std::uint64_t{0};
        for (std::size_t i = 2; i < size / 8; ++i) {
            if (words[i] != words[1]) return ~std::uint64_t{0};
        }
        return words[1] ^ number;
    }
};

class dense_fork : public ::testing::Test {
  protected:
    void SetUp() override {
        directory = testing::make_directory("fork");
        std::string why;
        space_ = space::create({.range_bytes = 512 * mib, .cold_directory = directory}, &why);
        ASSERT_NE(space_, nullptr) << why;
    }
    void TearDown() override {
        fault = {};
        if (space_ != nullptr) space::destroy(space_);
        testing::remove_empty_directory(directory);
    }

    // A new object in COLD. False: no room.
    bool add(std::size_t size, std::uint64_t version = 0) {
        object o{static_cast<std::uint64_t*>(space_->allocate_dense(cold_class, size, {})), size};
        if (o.words == nullptr) return false;
        o.words[0] = next_number_;
        o.write(version);
        objects.emplace(next_number_++, o);
        return true;
    }
    void free_if(auto&& condition) {
        std::erase_if(objects, [&](const auto& entry) {
            if (!condition(entry.first)) return false;
            space_->free(entry.second.words);
            return true;
        });
    }
    bool all_are(std::uint64_t version) const {
        for (const auto& [number, o] : objects) {
            const std::uint64_t seen = o.read(number);
            if (seen == version) continue;
            std::fprintf(stderr, "object %lu has version %lu, not %lu\n",
                         static_cast<unsigned long>(number), static_cast<unsigned long>(seen),
                         static_cast<unsigned long>(version));
            return false;
        }
        return true;
    }
    void write_all(std::uint64_t version) {
        for (auto& [number, o] : objects) o.write(version);
    }
    bool valid() const {
        std::string what;
        const bool good = space_->validate(&what);
        if (!good) std::fprintf(stderr, "broken: %s\n", what.c_str());
        return good;
    }
    // What a window does. False: no room for one of the objects.
    bool window() {
        bool room = true;
        space_->select_evacuation(cold_class, 0.75, 64 * mib);
        for (auto& [number, o] : objects) {
            if (!space_->evacuating(o.words)) continue;
            void* const to = space_->allocate_dense(cold_class, o.size, {});
            room = room && to != nullptr;
            if (to == nullptr) continue;
            std::memcpy(to, o.words, o.size);
            space_->free(o.words);
            o.words = static_cast<std::uint64_t*>(to);
        }
        space_->decommit_free_memory();
        return room;
    }

    // Forks; the child runs body(complete), where complete is what fork_child() said. The parent goes
    // on at once and asks for the result later, once.
    template <class Body>
    pid_t start_child(Body&& body) {
        space_->fork_prepare();
        const pid_t child = fork();
        if (child == 0) {
            const bool complete = space_->fork_child();
            _exit(body(complete) ? 0 : 1);
        }
        space_->fork_parent();
        return child;
    }
    static bool ended_well(pid_t child) {
        int status = 0;
        if (waitpid(child, &status, 0) != child) return false;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            std::fprintf(stderr, "the child's status is %x\n", static_cast<unsigned>(status));
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    template <class Body>
    bool in_child(Body&& body) {
        return ended_well(start_child(body));
    }
    // A child that waits until the parent says go.
    class held_child {
      public:
        template <class Body>
        held_child(dense_fork& test, Body&& body) {
            EXPECT_EQ(pipe(ends_), 0);
            child_ = test.start_child([&](bool complete) {
                close(ends_[1]);
                char byte = 0;
                return read(ends_[0], &byte, 1) == 1 && complete && body();
            });
            close(ends_[0]);
        }
        bool go() {
            const bool told = write(ends_[1], "g", 1) == 1;
            close(ends_[1]);
            return ended_well(child_) && told;
        }

      private:
        int ends_[2] = {-1, -1};
        pid_t child_ = -1;
    };

    struct files {
        std::set<std::string> inodes; // of all that are mapped
        std::size_t mappings = 0;
        std::uint64_t bytes = 0; // of storage
        bool bytes_known = true;
        int descriptors = 0;
    };
    static files mapped_files() {
        files found;
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            if (line.find(directory) == std::string::npos) continue;
            std::istringstream words(line);
            std::string range, permissions, offset, device, inode;
            words >> range >> permissions >> offset >> device >> inode;
            ++found.mappings;
            if (!found.inodes.insert(inode).second) continue;
            struct stat facts{};
            if (stat(("/proc/self/map_files/" + range).c_str(), &facts) == 0)
                found.bytes += static_cast<std::uint64_t>(facts.st_blocks) * 512;
            else
                found.bytes_known = false;
        }
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
            std::error_code ignored;
            const auto path = std::filesystem::read_symlink(entry, ignored).string();
            found.descriptors += path.starts_with(directory);
        }
        return found;
    }

    static inline std::string directory;
    std::map<std::uint64_t, object> objects;
    space* space_ = nullptr;

  private:
    testing::failing_calls calls_;
    std::uint64_t next_number_ = 1;
};

// Threads write stamps round and round into objects of COLD, in place, and each after it has seen
// another's. Whatever cut through their histories the child gets, it must be one: all stamps of a
// thread up to some last one and none after it, and no thread may have seen a stamp that another's
// history does not have.
TEST_F(dense_fork, is_a_snapshot_while_others_write) {
    constexpr std::size_t size = 4096;
    constexpr unsigned count = 3;
    constexpr std::size_t each = 256;
    struct cell {
        std::atomic<std::uint64_t> stamp;
        std::atomic<std::uint64_t> seen; // the newest stamp of the thread before
    };
    std::vector<cell*> cells[count];
    for (std::size_t i = 0; i < each; ++i) {
        for (auto& row : cells) {
            void* const memory = space_->allocate_dense(cold_class, size, {});
            ASSERT_NE(memory, nullptr);
            row.push_back(new (memory) cell{});
        }
    }
    // Each writes the stamp n into cell n % each, so the newest is found by looking at all.
    std::atomic<std::uint64_t> newest[count] = {};
    std::atomic<bool> stop{false};
    std::vector<std::thread> writers;
    for (unsigned t = 0; t < count; ++t) {
        writers.emplace_back([&, t] {
            const unsigned before = (t + count - 1) % count;
            for (std::uint64_t n = 1; !stop; ++n) {
                const std::uint64_t at = newest[before];
                cell& own = *cells[t][n % each];
                own.seen = cells[before][at % each]->stamp.load();
                own.stamp = n;
                newest[t] = n;
            }
        });
    }
    const auto is_a_cut = [&] {
        std::uint64_t last[count];
        for (unsigned t = 0; t < count; ++t) {
            last[t] = 0;
            for (const cell* c : cells[t]) last[t] = std::max(last[t], c->stamp.load());
            for (std::size_t i = 0; i < each; ++i) {
                const std::uint64_t n = last[t] - (last[t] + each - i) % each;
                if (cells[t][i]->stamp != (last[t] < n ? 0 : n)) return false;
            }
        }
        for (unsigned t = 0; t < count; ++t) {
            for (const cell* c : cells[t])
                if (c->seen > last[(t + count - 1) % count]) return false;
        }
        return true;
    };
    const std::uint64_t rounds = testing::scaled(40, 1000, 20'000);
    for (std::uint64_t round = 0; round < rounds; ++round) {
        ASSERT_TRUE(in_child([&](bool complete) {
            return complete && is_a_cut() && in_child([&](bool all) { return all && is_a_cut(); });
        })) << round;
        // Some of it lies in a file of its own for every other fork.
        if (round % 2 == 0) {
            ASSERT_TRUE(add(1000, round));
        }
    }
    stop = true;
    for (auto& w : writers) w.join();
    EXPECT_TRUE(is_a_cut());
    EXPECT_TRUE(valid());
}

// Whichever process is the first to free, to return memory and to fill it again, the other's
// objects stay.
TEST_F(dense_fork, neither_reaches_the_other) {
    for (int i = 0; i < 2'000; ++i) ASSERT_TRUE(add(1000, 1));
    const auto replace_all = [&](std::uint64_t version) {
        write_all(version + 100);
        if (!all_are(version + 100)) return false;
        free_if([](std::uint64_t number) { return number % 3 != 0; });
        for (int i = 0; i < 4; ++i)
            if (!window()) return false;
        free_if([](std::uint64_t) { return true; });
        space_->decommit_free_memory();
        for (int i = 0; i < 3'000; ++i)
            if (!add(1000, version)) return false;
        return all_are(version) && valid();
    };
    held_child first(*this, [&] {
        // The parent has done all of that.
        return all_are(1) && replace_all(2) &&
               in_child([&](bool complete) { return complete && all_are(2) && replace_all(3); }) &&
               all_are(2);
    });
    ASSERT_TRUE(replace_all(7));
    ASSERT_TRUE(first.go());
    ASSERT_TRUE(all_are(7));
    ASSERT_TRUE(in_child([&](bool complete) { return complete && all_are(7) && replace_all(8); }));
    ASSERT_TRUE(all_are(7));
    ASSERT_TRUE(valid());
}

// The run that was being filled, runs that were free with and without storage, and what was made
// ready and never used: none of them is used by both.
TEST_F(dense_fork, runs_of_every_state) {
    for (int i = 0; i < 400; ++i) ASSERT_TRUE(add(4000, 1));
    free_if([](std::uint64_t number) { return number > 100 && number <= 200; });
    space_->decommit_free_memory(); // free, without storage
    free_if([](std::uint64_t number) { return number > 250 && number <= 300; });
    const auto fill = [&](std::uint64_t version, int objects_more) {
        std::map<std::uint64_t, object> old;
        old.swap(objects);
        for (int i = 0; i < objects_more; ++i)
            if (!add(500, version)) return false;
        const bool good = all_are(version);
        objects.merge(old);
        return good;
    };
    const auto old_ones = [&](std::uint64_t version) {
        for (const auto& [number, o] : objects)
            if (number <= 400 && o.read(number) != version) return false;
        return true;
    };
    for (const int more : {1, 3'000}) {
        held_child child(*this, [&] { return fill(5, 3'000) && old_ones(1) && valid(); });
        ASSERT_TRUE(fill(6, more));
        ASSERT_TRUE(child.go());
        ASSERT_TRUE(old_ones(1) && valid());
    }
}

// Objects that need several runs of 64 KiB, and some that share them: frozen, moved out, and their runs used
// again in either process.
TEST_F(dense_fork, long_runs_are_frozen_as_a_whole) {
    const auto size_of = [](int i) {
        return std::size_t{20'480} + 13'056 * (static_cast<unsigned>(i) % 29);
    };
    for (int i = 0; i < 300; ++i) ASSERT_TRUE(add(size_of(i), 1));
    const auto replace_some = [&](std::uint64_t version) {
        write_all(version);
        free_if([](std::uint64_t number) { return number % 5 < 2; });
        for (int i = 0; i < 4; ++i)
            if (!window()) return false;
        for (int i = 0; i < 60; ++i)
            if (!add(size_of(3 * i), version)) return false;
        return all_are(version) && valid();
    };
    held_child child(*this, [&] {
        return all_are(1) && valid() && replace_some(2) &&
               in_child([&](bool complete) { return complete && all_are(2) && replace_some(3); }) &&
               all_are(2);
    });
    ASSERT_TRUE(replace_some(7));
    ASSERT_TRUE(child.go());
    ASSERT_TRUE(all_are(7) && valid());
    free_if([](std::uint64_t) { return true; });
    space_->decommit_free_memory();
    EXPECT_TRUE(valid());
    EXPECT_LE(space_->counters(cold_class).extent_bytes, 10 * run_bytes) << "the run being filled";
}

// Forks without end: the objects move on into younger files, so that neither storage nor mappings
// nor descriptors pile up, and the counters say what is kept.
TEST_F(dense_fork, storage_is_bounded) {
    const std::uint64_t forks = testing::scaled(60, 600, 5'000);
    constexpr std::size_t population = 3'000;
    constexpr std::size_t size = 2'000;
    for (std::uint64_t f = 0; f < forks; ++f) {
        while (objects.size() < population) ASSERT_TRUE(add(size, 9));
        ASSERT_TRUE(in_child([&](bool complete) {
            return complete && all_are(9) && mapped_files().descriptors == 0;
        }));
        // A twentieth of the objects is replaced, in an order that is not that of the addresses.
        free_if([&](std::uint64_t number) { return number * 2654435761 % 20 == f % 20; });
        ASSERT_TRUE(window());
        ASSERT_TRUE(all_are(9));
        if (f % 10 != 9) continue;
        ASSERT_TRUE(valid());
        const auto counters = space_->counters(cold_class);
        const std::uint64_t live = counters.live_bytes;
        EXPECT_LT(counters.extent_bytes, 3 * live) << "fork " << f;
        const files now = mapped_files();
        EXPECT_LE(now.inodes.size(), 2 * dense_heap<native>::files_kept);
        EXPECT_LE(now.descriptors, static_cast<int>(2 * dense_heap<native>::files_kept + 2));
        EXPECT_LE(now.mappings, 2 * dense_heap<native>::pieces_kept);
        if (now.bytes_known) {
            EXPECT_LT(now.bytes, 3 * live) << "fork " << f;
            EXPECT_LE(now.bytes, counters.extent_bytes + 4 * mib);
        }
    }
    free_if([](std::uint64_t) { return true; });
    space_->decommit_free_memory();
    EXPECT_LE(space_->counters(cold_class).extent_bytes, run_bytes) << "the run being filled";
    EXPECT_LE(mapped_files().inodes.size(), 1U);
    if (mapped_files().bytes_known) {
        EXPECT_LE(mapped_files().bytes, 4 * mib);
    }
}

// Storage that no run needs any more is kept by those that do: no run is sparse here, but most of the
// file is dead. And each file is full of life, but there are too many of them.
TEST_F(dense_fork, files_are_left_even_where_no_run_is_sparse) {
    constexpr std::size_t size = 8'000;
    constexpr std::size_t per_run = run_bytes / size;
    for (std::size_t i = 0; i < 200 * per_run; ++i) ASSERT_TRUE(add(size, 4));
    ASSERT_TRUE(in_child([&](bool complete) { return complete && all_are(4); }));
    free_if([](std::uint64_t number) { return number > 40 * per_run; });
    space_->decommit_free_memory();
    EXPECT_GE(space_->counters(cold_class).hole_bytes, 150 * run_bytes)
        << "kept for nothing, and said";
    ASSERT_TRUE(window());
    EXPECT_LT(space_->counters(cold_class).extent_bytes, 50 * run_bytes);
    const files now = mapped_files();
    EXPECT_EQ(now.inodes.size(), 1U);
    if (now.bytes_known) {
        EXPECT_LT(now.bytes, 50 * run_bytes + 4 * mib);
    }
    for (int f = 0; f < 40; ++f) {
        ASSERT_TRUE(in_child([&](bool complete) { return complete && all_are(4); }));
        for (std::size_t i = 0; i < 8 * per_run; ++i) ASSERT_TRUE(add(size, 4));
        ASSERT_TRUE(window());
    }
    EXPECT_LE(mapped_files().inodes.size(), dense_heap<native>::files_kept + 2);
    EXPECT_TRUE(all_are(4) && valid());
}

// A fork that finds nothing new in the file costs neither a file nor a mapping.
TEST_F(dense_fork, costs_nothing_where_nothing_moved) {
    for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(add(1000, 1));
    ASSERT_TRUE(in_child([&](bool complete) { return complete && all_are(1); }));
    const files before = mapped_files();
    EXPECT_EQ(fault.remaps, 1);
    EXPECT_EQ(before.mappings, 1U) << "the mapping was replaced as a whole";
    for (int f = 0; f < 5; ++f)
        ASSERT_TRUE(in_child([&](bool complete) { return complete && all_are(1); }));
    EXPECT_EQ(fault.remaps, 1);
    EXPECT_EQ(mapped_files().mappings, 1U);
    EXPECT_EQ(mapped_files().bytes, before.bytes);
    write_all(2);
    EXPECT_TRUE(in_child([&](bool complete) { return complete && all_are(2); }));
}

// A mapping that cannot be made private stays with the parent, whole. The child goes on without the
// objects in it: to touch them is a fault, not a mix of two processes, and to execute another
// program, which is what most children do, works.
TEST_F(dense_fork, no_mapping_no_access_and_no_corruption) {
    const auto number_of = [](unsigned fork_number) { return std::uint64_t{10} + fork_number; };
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(add(4000, 10));
    for (unsigned f = 0; f < 6; ++f) {
        const std::uint64_t version = number_of(f);
        ASSERT_TRUE(all_are(version));
        fault.remaps_left = f % 3 == 0 ? 0 : static_cast<int>(f % 3) - 1;
        const auto child = [&](bool complete) {
            fault.remaps_left = -1;
            if (complete || !valid()) return false;
            // A grandchild touches them, from the newest to the oldest: one at least must fault, and
            // what does not fault must be right.
            const pid_t reader = fork();
            if (reader == 0) {
                std::signal(SIGSEGV, SIG_DFL);
                for (auto o = objects.rbegin(); o != objects.rend(); ++o)
                    if (o->second.read(o->first) != version) _exit(2);
                _exit(0);
            }
            int status = 0;
            waitpid(reader, &status, 0);
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) return false;
            // Freeing needs no look at them; then all of it can be used again.
            free_if([](std::uint64_t) { return true; });
            space_->decommit_free_memory();
            for (int i = 0; i < 500; ++i)
                if (!add(4000, 99)) return false;
            return all_are(99) && valid() && in_child([&](bool all) { return all && all_are(99); });
        };
        const pid_t pid = start_child(child);
        fault.remaps_left = -1;
        write_all(number_of(f + 1)); // meanwhile
        ASSERT_TRUE(ended_well(pid)) << f;
        ASSERT_TRUE(all_are(number_of(f + 1)) && valid());
        ASSERT_TRUE(add(4000, number_of(f + 1))); // a new file each time
        // What failed is done by the next fork.
        if (f % 2 == 1) {
            held_child good(*this, [&] { return all_are(number_of(f + 1)); });
            write_all(98);
            free_if([](std::uint64_t number) { return number % 5 == 0; });
            ASSERT_TRUE(window());
            ASSERT_TRUE(good.go());
            write_all(number_of(f + 1));
        }
    }
    free_if([](std::uint64_t) { return true; });
    space_->decommit_free_memory();
    EXPECT_TRUE(valid());
    EXPECT_LE(space_->counters(cold_class).extent_bytes, run_bytes) << "the run being filled";
}

// After a fork a new file is needed. Without one, without storage for it and without mappings there
// is no room, and nothing else changes; what was freed meanwhile is used when there is room again.
TEST_F(dense_fork, no_new_file_means_no_move) {
    for (int i = 0; i < 500; ++i) ASSERT_TRUE(add(4000, 1));
    const auto without = [&](auto&& shortage) {
        fault = {};
        if (!in_child([&](bool complete) { return complete && all_are(1); })) return 1;
        shortage();
        if (add(4000, 1)) return 2;
        free_if([](std::uint64_t number) { return number % 4 == 0; });
        space_->decommit_free_memory();
        if (!all_are(1) || !valid()) return 3;
        free_if([](std::uint64_t number) { return number % 4 == 1; });
        window();
        if (!all_are(1) || !valid()) return 4;
        if (!in_child([&](bool complete) { return complete && all_are(1) && valid(); })) return 5;
        shortage();
        window();
        if (add(4000, 1) || !all_are(1)) return 6;
        fault = {};
        if (!window()) return 7;
        while (objects.size() < 500)
            if (!add(4000, 1)) return 8;
        return all_are(1) && valid() ? 0 : 9;
    };
    EXPECT_EQ(without([] { fault.opens_left = 0; }), 0);
    EXPECT_EQ(without([] { fault.fallocate = ENOSPC; }), 0);
    EXPECT_EQ(without([] { fault.file_mmaps_left = 0; }), 0);
    EXPECT_EQ(without([] {
                  fault.file_mmaps_left = 0;
                  fault.madvise = true;
              }),
              0);
}

// Every other run is freed, which would make as many mappings as there are runs: the process has
// only so many, and the library is a guest.
TEST_F(dense_fork, free_runs_between_frozen_ones_do_not_use_the_map_count_up) {
    constexpr std::size_t per_run = run_bytes / max_small_size;
    constexpr std::size_t runs = 3 * dense_heap<native>::pieces_kept;
    for (std::size_t i = 0; i < runs * per_run; ++i)
        ASSERT_NE(space_->allocate_dense(cold_class, max_small_size, {}), nullptr);
    ASSERT_TRUE(in_child([&](bool complete) { return complete && valid(); }));
    char* const base = space_->range_begin(cold_class);
    for (std::size_t run = 0; run < runs; run += 2) {
        for (std::size_t i = 0; i < per_run; ++i)
            space_->free(base + run * run_bytes + i * max_small_size);
    }
    space_->decommit_free_memory();
    EXPECT_LE(mapped_files().mappings, dense_heap<native>::pieces_kept);
    EXPECT_TRUE(valid());
    // They are taken when their neighbours are free, too.
    for (std::size_t run = 1; run < runs; run += 2) {
        for (std::size_t i = 0; i < per_run; ++i)
            space_->free(base + run * run_bytes + i * max_small_size);
    }
    space_->decommit_free_memory();
    EXPECT_EQ(mapped_files().inodes.size(), 1U);
    EXPECT_LE(space_->counters(cold_class).extent_bytes, run_bytes) << "the run being filled";
    EXPECT_TRUE(valid());
}

// A child that was made past the handlers of fork has no access to what the parent goes on writing.
TEST_F(dense_fork, a_child_made_past_the_handlers_does_not_share) {
    if (sanitized) GTEST_SKIP() << "sanitizers do not live through that";
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(add(4000, 1));
    const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) {
        objects.begin()->second.write(2);
        _exit(0);
    }
    ASSERT_GT(child, 0);
    int status = 0;
    ASSERT_EQ(waitpid(static_cast<pid_t>(child), &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    EXPECT_TRUE(all_are(1));
}

} // namespace
} // namespace obase::heap
