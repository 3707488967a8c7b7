// SPDX-License-Identifier: MIT
//
// In the running system windows are longer while the program rests, if there is a budget of memory and it is not
// passed. The machine can make windows longer, and never shorter; where they are to be short the test goes on until it
// has seen that.
#include "os/thread.hpp"
#include "runtime/program_time.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace {

struct item {
    std::uint64_t id;
};

constexpr double length = .01; // seconds of a window
constexpr double longest = obase::runtime_internal::program_time::longest;

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}
void sleep_for(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

struct resting_program : testing::Test {
    void begin(const char* memory) {
        obase::options settings = obase::options::from_environment();
        settings.memory = memory;
        settings.window_seconds = length;
        ASSERT_EQ(runtime.configure(settings), "");
        for (std::uint64_t i = 0; i < 1000; ++i)
            items.emplace_back(obase::make_managed<item>(item{i}));
    }
    ~resting_program() override { runtime.stop(); }
    std::uint64_t windows() const { return runtime.statistics().windows; }
    // Ends: while it runs, windows do.
    void run() const {
        for (const std::uint64_t until = windows() + 5; windows() < until;)
            for (const auto& one : items) {
                const obase::scope s;
                EXPECT_LT(one->id, items.size());
            }
    }
    // Windows in f(), by as many as there are if they are as long as may be. One was nearly over, and that of the last work
    // is another.
    template <class Function>
    double windows_in(Function&& f) const {
        const auto before = windows();
        const double began = now();
        f();
        const auto passed = static_cast<double>(windows() - before);
        return passed / ((now() - began) / (longest * length) + 2);
    }

    obase::runtime& runtime = obase::runtime::get();
    std::vector<obase::guide<item>> items;
};

// In one sleep, which takes no time of a processor.
void rest() { sleep_for(60 * length); }

TEST_F(resting_program, has_few_windows_within_its_budget) {
    begin("1000G");
    for (int i = 0; i < 3; ++i) {
        run();
        EXPECT_LE(windows_in(rest), 1);
    }
}

TEST_F(resting_program, has_windows_as_usual_without_a_budget) {
    begin("none");
    do run();
    while (windows_in(rest) < 2);
}

TEST_F(resting_program, has_windows_as_usual_over_its_budget) {
    begin("1");
    do run();
    while (windows_in(rest) < 2);
}

TEST_F(resting_program, does_not_rest_while_it_reads_from_the_disk) {
    begin("1000G");
    const std::string name = testing::TempDir() + "obase-read-" + std::to_string(::getpid());
    const int file = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ::unlink(name.c_str());
    std::string text(std::size_t{64} * 4096, 'x');
    const auto bytes = static_cast<ssize_t>(text.size());
    ASSERT_EQ(::write(file, text.data(), text.size()), bytes);
    ASSERT_EQ(::fsync(file), 0);
    // Many pages at once take little time of a processor.
    const auto read_some = [&] {
        ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        EXPECT_EQ(::pread(file, text.data(), text.size(), 0), bytes);
    };
    const std::uint64_t before = obase::os::thread_read_bytes();
    read_some();
    if (obase::os::thread_read_bytes() == before) {
        ::close(file);
        GTEST_SKIP() << testing::TempDir() << " has no disk, or its reads are not counted";
    }
    do run();
    while (windows_in([&] {
               for (int i = 0; i < 40; ++i) {
                   read_some(); // 6 ms, as they are counted
                   sleep_for(length);
               }
           }) < 2);
    ::close(file);
}

} // namespace
