// SPDX-License-Identifier: MIT
//
// Tables lie apart from each other, chunks with gaps are told, and what is empty takes no memory.
#include "handles/table_memory.hpp"

#include <gtest/gtest.h>

#include <malloc.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "os/process.hpp"

namespace obase::handles {
namespace {

constexpr std::size_t chunk = table_memory::chunk_bytes;

std::size_t resident(const void* table, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(table) & ~(os::page_size - 1);
    std::vector<unsigned char> pages(bytes / os::page_size);
    EXPECT_EQ(::mincore(reinterpret_cast<void*>(begin), bytes, pages.data()), 0);
    std::size_t count = 0;
    for (const unsigned char page : pages) count += page & 1;
    return count * os::page_size;
}

TEST(table_memory, tables_do_not_overlap) {
    table_memory memory;
    std::mt19937_64 random(1);
    std::map<char*, std::size_t> tables;
    for (int i = 0; i < 20'000; ++i) {
        if (random() % 5 < 3 || tables.empty()) {
            const std::size_t bytes = 1 + random() % (i % 50 == 0 ? 100'000 : 3000);
            auto* const table = static_cast<char*>(memory.allocate(bytes, true));
            ASSERT_NE(table, nullptr);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(table) % 16, 0u);
            std::memset(table, static_cast<int>(bytes % 251), bytes);
            tables[table] = bytes;
            continue;
        }
        auto victim = tables.begin();
        std::advance(victim, static_cast<std::ptrdiff_t>(random() %
                                                         std::min<std::size_t>(tables.size(), 64)));
        for (std::size_t at = 0; at < victim->second; ++at)
            ASSERT_EQ(static_cast<unsigned char>(victim->first[at]), victim->second % 251);
        memory.free(victim->first, victim->second, true);
        tables.erase(victim);
    }
}

TEST(table_memory, a_chunk_is_sparse_when_an_eighth_of_it_is_free) {
    table_memory memory;
    constexpr std::size_t bytes = 4000, in_chunk = chunk / bytes;
    std::vector<void*> tables;
    for (std::size_t i = 0; i < in_chunk; ++i) tables.push_back(memory.allocate(bytes, true));
    for (std::size_t i = 0; i < in_chunk / 2; ++i) memory.free(tables[i], bytes, true);
    EXPECT_FALSE(memory.is_sparse(tables.back())) << "more comes into it";
    std::vector<void*> others;
    for (std::size_t i = 0; i < in_chunk; ++i) others.push_back(memory.allocate(bytes, true));
    EXPECT_TRUE(memory.is_sparse(tables.back()));
    void* const filling = memory.allocate(bytes, true); // and the second chunk is full
    for (std::size_t i = 0; i < in_chunk / 8; ++i) {
        EXPECT_FALSE(memory.is_sparse(others.back())) << i;
        memory.free(others[i], bytes, true);
    }
    memory.free(others[in_chunk / 8], bytes, true);
    EXPECT_TRUE(memory.is_sparse(others.back()));
    EXPECT_FALSE(memory.is_sparse(filling));
}

TEST(table_memory, what_is_empty_takes_no_memory_and_is_filled_again) {
    table_memory memory;
    constexpr std::size_t bytes = 8192, in_chunk = (chunk - 1) / bytes;
    std::vector<void*> tables;
    for (std::size_t i = 0; i < 9 * in_chunk; ++i) {
        tables.push_back(memory.allocate(bytes, true));
        std::memset(tables.back(), 1, bytes);
    }
    EXPECT_GT(resident(tables[0], chunk), chunk - 3 * os::page_size);
    for (std::size_t i = 0; i < in_chunk; ++i) memory.free(tables[i], bytes, true);
    EXPECT_EQ(resident(tables[0], chunk), os::page_size) << "what says that it is empty";
    EXPECT_EQ(memory.bytes(), 8 * in_chunk * bytes);

    std::vector<void*> again;
    while (again.size() < in_chunk + 1) again.push_back(memory.allocate(bytes, true));
    EXPECT_EQ(again.front(), tables[0]) << "before chunks that were never filled";
    for (std::size_t i = in_chunk; i < tables.size(); ++i) memory.free(tables[i], bytes, true);
    for (void* const table : again) memory.free(table, bytes, true);
    EXPECT_EQ(memory.allocate(table_memory::most_bytes + 1, true), nullptr);
    EXPECT_NE(memory.allocate(table_memory::most_bytes, true), nullptr);
}

TEST(table_memory, without_memory_there_is_no_table) {
    os::memory_calls failing = os::real_memory_calls();
    failing.mprotect = [](void*, std::size_t, int) {
        errno = ENOMEM;
        return -1;
    };
    os::use_memory_calls(&failing);
    {
        table_memory memory;
        EXPECT_EQ(memory.allocate(100, true), nullptr);
        os::use_memory_calls(nullptr);
        EXPECT_NE(memory.allocate(100, true), nullptr);
    }
}

// What cannot be copied leaves no gaps behind.
TEST(table_memory, tables_that_stay_are_malloc_s) {
    table_memory memory;
    void* const table = memory.allocate(1000, false);
    ASSERT_NE(table, nullptr);
    EXPECT_GE(malloc_usable_size(table), 1000u);
    EXPECT_EQ(memory.bytes(), 1008u);
    memory.free(table, 1000, false);
    EXPECT_EQ(memory.bytes(), 0u);
}

} // namespace
} // namespace obase::handles
