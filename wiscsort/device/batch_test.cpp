// SPDX-License-Identifier: MIT
//
// Records gathered with many reads in flight: what read() gives, whatever fails or comes short.
#include "wiscsort/device/batch.hpp"
#include "wiscsort/device/calls.hpp"
#include "wiscsort/device/directory_test.hpp"
#include "wiscsort/device/input.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace wiscsort::device {

namespace {

using testing::temporary_directory;

std::string noise(std::size_t size, unsigned seed) {
    std::mt19937_64 random(seed);
    std::string bytes(size, 0);
    for (char& byte : bytes) byte = static_cast<char>(random());
    return bytes;
}

// Every record of two files, in an order that is not theirs.
void gathers_what_was_written(std::size_t size, std::size_t count, bool past_cache,
                              unsigned threads = 1) {
    SCOPED_TRACE(fmt::format("{} x {}, {}", count, size, past_cache ? "direct" : "cached"));
    temporary_directory folder;
    const std::string files[] = {noise(size * count, 1), noise(size * (count / 2 + 1), 2)};
    scratch_space scratch({folder.path()});
    input_set input({folder.write("a", files[0]), folder.write("b", files[1])},
                    {record_format::parse(fmt::format("fixed:{}", size)), false}, scratch);
    if (past_cache) input.bypass_cache(threads);
    std::vector<entry> entries;
    std::vector<std::pair<int, std::size_t>> from;
    for (int f = 0; f < 2; ++f)
        for (std::size_t i = 0; i * size < files[f].size(); ++i) from.emplace_back(f, i * size);
    std::shuffle(from.begin(), from.end(), std::mt19937_64(3));
    for (const auto& [file, at] : from)
        entries.push_back({input.files()[static_cast<std::size_t>(file)].begin + at, 0});
    const auto check = [&] {
        std::string got(entries.size() * size, 0);
        input.gather(entries.data(), entries.size(), size, got.data());
        for (std::size_t i = 0; i < from.size(); ++i)
            ASSERT_EQ(std::memcmp(got.data() + i * size,
                                  files[from[i].first].data() + from[i].second, size),
                      0)
                << "record " << i;
    };
    std::vector<std::thread> others;
    for (unsigned t = 1; t < threads; ++t) others.emplace_back(check);
    check();
    for (std::thread& other : others) other.join();
}

std::atomic<int> every_error{0};
std::atomic<bool> every_short{false};
std::atomic<long> asked{0};

fault on_ring(const char* call) {
    if (std::strncmp(call, "io_uring_read", 13) != 0) return {};
    ++asked;
    return {every_error.load(), every_short.load()};
}
fault no_ring(const char* call) {
    return {std::strcmp(call, "io_uring_setup") == 0 ? ENOSYS : 0, false};
}

struct hook {
    explicit hook(fault_hook each) { set_fault_hook(each); }
    ~hook() {
        set_fault_hook(nullptr);
        every_error = 0;
        every_short = false;
        asked = 0;
    }
};

} // namespace

TEST(Batch, GathersWhatWasWritten) {
    for (const bool past_cache : {false, true})
        for (const std::size_t size : {std::size_t{1}, std::size_t{100}, std::size_t{4086},
                                       std::size_t{4096}, std::size_t{20000}})
            gathers_what_was_written(size, size == 1 ? 3000 : 300, past_cache, 3);
    // Larger than the room for what is in flight.
    gathers_what_was_written(9000000, 2, true);
    if (!read_batch().together()) GTEST_SKIP() << "no io_uring here: one after the other";
}

TEST(Batch, WhatComesShortOrNotAtAllIsReadAgain) {
    for (const bool past_cache : {false, true}) {
        const hook installed(on_ring);
        every_short = true;
        gathers_what_was_written(5000, 100, past_cache);
        every_short = false;
        every_error = EIO;
        gathers_what_was_written(5000, 100, past_cache);
        EXPECT_TRUE(asked > 0 || !read_batch().together());
    }
    const hook installed(no_ring);
    EXPECT_FALSE(read_batch().together());
    gathers_what_was_written(5000, 100, true);
}

// A file that is cut meanwhile is said so, with the place.
TEST(Batch, ACutFileIsAnError) {
    temporary_directory folder;
    scratch_space scratch({folder.path()});
    const std::string name = folder.write("a", noise(100000, 1));
    input_set input({name}, {record_format::parse("fixed:1000"), false}, scratch);
    input.bypass_cache(1);
    std::filesystem::resize_file(name, 50500);
    const entry entries[] = {{1000, 0}, {50000, 0}};
    std::string to(2000, 0);
    try {
        input.gather(entries, 2, 1000, to.data());
        ADD_FAILURE() << "it was not seen";
    } catch (const error& problem) {
        EXPECT_NE(std::string(problem.what()).find("was cut to 50500 bytes"), std::string::npos)
            << problem.what();
    }
}

} // namespace wiscsort::device
