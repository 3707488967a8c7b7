// SPDX-License-Identifier: MIT
#include "tools/workload/recorded_operations.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace workload;

class RecordedOperations : public ::testing::Test {
  protected:
    std::string path() const {
        return ::testing::TempDir() + "recorded_operations." + std::to_string(::getpid());
    }
    void TearDown() override { std::filesystem::remove(path()); }

    void write_two() const {
        operation_recorder file(path(), "header", 2);
        file.add(1, {7, 100, 0, operation::update});
        file.add(0, {8, 0, 30, operation::scan});
        file.finish();
    }
    std::string bytes() const {
        std::ostringstream text;
        text << std::ifstream(path(), std::ios::binary).rdbuf();
        return text.str();
    }
    void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
    std::string complaint() const {
        try {
            read_recorded_operations(path());
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "";
    }
};

TEST_F(RecordedOperations, ComeBackInEachClientsOrder) {
    constexpr unsigned clients = 3, operations = 50'000;
    std::vector<std::vector<recorded_operation>> sent(clients);
    {
        operation_recorder file(path(), R"({"a": "b c"})", clients);
        std::vector<std::thread> threads;
        for (unsigned c = 0; c < clients; ++c)
            threads.emplace_back([&, c] {
                for (unsigned i = 0; i < operations; ++i) {
                    sent[c].push_back({(std::uint64_t{i} << 32) + c, i, i / 3,
                                       static_cast<operation>((i + c) % operation_count)});
                    file.add(c, sent[c].back());
                }
            });
        for (std::thread& t : threads) t.join();
        file.finish();
    }
    const recorded_operations run = read_recorded_operations(path());
    EXPECT_EQ(run.header, R"({"a": "b c"})");
    EXPECT_EQ(run.clients, sent);
}

TEST_F(RecordedOperations, TornAnywhereIsRefusedWithTheRecord) {
    write_two();
    const std::string whole = bytes();
    EXPECT_EQ(complaint(), "");
    const std::size_t line = whole.find('\n') + 1;
    ASSERT_EQ(whole.size(), line + 60);
    for (std::size_t size = line; size < whole.size(); ++size) {
        write(whole.substr(0, size));
        const std::string record = ", record " + std::to_string((size - line) / 20 + 1) + ":";
        EXPECT_NE(complaint().find(record), std::string::npos) << size << ": " << complaint();
        EXPECT_NE(complaint().find("torn"), std::string::npos) << size;
    }
    write(whole + "x");
    EXPECT_NE(complaint().find("record 3: expected nothing behind the end"), std::string::npos);
    for (std::size_t size = 0; size < 20; ++size) {
        write(whole.substr(0, size));
        EXPECT_NE(complaint().find("line 1"), std::string::npos) << complaint();
    }
}

TEST_F(RecordedOperations, AChangedByteIsRefused) {
    write_two();
    const std::string whole = bytes();
    for (std::size_t at = whole.find('\n') + 1; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] + 1);
        write(changed);
        EXPECT_NE(complaint(), "") << at;
    }
}

TEST_F(RecordedOperations, WhatCannotBeIsNamed) {
    write_two();
    const std::string whole = bytes();
    const std::size_t line = whole.find('\n') + 1;
    const auto with = [&](std::size_t at, int by) {
        std::string changed = whole;
        changed[line + at] = static_cast<char>(changed[line + at] + by);
        changed[line + 19] = static_cast<char>(changed[line + 19] + by); // and the sum
        write(changed);
        return complaint();
    };
    EXPECT_NE(with(16, 5).find("record 1: expected a client below 2; found 5"), std::string::npos);
    EXPECT_NE(with(18, 50).find("record 1: expected an operation"), std::string::npos);
    // The end of another number of records.
    std::string missing = whole;
    missing.erase(line, 20);
    write(missing);
    EXPECT_NE(complaint().find("record 2: expected the end of 1 records; found that of 2"),
              std::string::npos)
        << complaint();
}

TEST_F(RecordedOperations, FilesThatCannotBe) {
    EXPECT_THROW(read_recorded_operations("/nonexistent/file"), std::runtime_error);
    EXPECT_THROW(operation_recorder("/nonexistent/file", "", 1), std::runtime_error);
    EXPECT_THROW(operation_recorder(path(), "", 0), std::runtime_error);
}

} // namespace
