// SPDX-License-Identifier: MIT
#include "tools/workload/value_content.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

namespace {

using workload::check_value;
using workload::kept_version;

std::string value(std::size_t size, std::uint64_t id, std::uint64_t version) {
    std::string text(size, '?');
    workload::fill_value(text, id, version);
    return text;
}

RC_GTEST_PROP(ValueContent, WhatWasFilledIsRecognized, (std::uint64_t id, std::uint64_t version)) {
    const auto size = *rc::gen::inRange<std::size_t>(0, 2100);
    RC_ASSERT(check_value(value(size, id, version), id) == kept_version(version, size));
    RC_ASSERT(value(size, id, version) == value(size, id, version));
}

TEST(ValueContent, VersionsAreKeptAsDocumented) {
    constexpr std::uint64_t version = 0x1122334455667788;
    EXPECT_EQ(check_value(value(1024, 1, version), 1), version);
    EXPECT_EQ(check_value(value(16, 1, version), 1), version);
    EXPECT_EQ(check_value(value(15, 1, version), 1), 0x55667788U);
    EXPECT_EQ(check_value(value(7, 1, version), 1), 0x7788U);
    EXPECT_EQ(check_value(value(2, 1, version), 1), 0x88U);
    EXPECT_EQ(check_value(value(1, 1, version), 1), 0x88U);
    EXPECT_EQ(check_value("", 1), 0U);
}

// Every single byte counts, the zero half too.
TEST(ValueContent, AChangedByteIsSeen) {
    for (const std::size_t size : {16U, 23U, 24U, 100U, 1024U, 1031U}) {
        const std::string good = value(size, 7, 3);
        for (std::size_t at = 0; at < size; ++at) {
            for (const int flip : {1, 128}) {
                std::string bad = good;
                bad[at] = static_cast<char>(bad[at] ^ flip);
                ASSERT_EQ(check_value(bad, 7), std::nullopt) << size << " bytes, at " << at;
            }
        }
    }
}

// A reader that meets a write half done: the first bytes of one version, the rest of the other.
TEST(ValueContent, ATornValueIsSeen) {
    for (const std::size_t size : {24U, 100U, 1024U}) {
        const std::string before = value(size, 7, 3);
        const std::string after = value(size, 7, 4);
        for (std::size_t cut = 1; cut < size; ++cut) {
            const std::string torn = after.substr(0, cut) + before.substr(cut);
            if (torn == before || torn == after) continue; // cut within equal bytes
            ASSERT_EQ(check_value(torn, 7), std::nullopt) << size << " bytes, cut at " << cut;
        }
    }
}

RC_GTEST_PROP(ValueContent, ForeignAndCutValuesAreSeen, (std::uint64_t id, std::uint64_t version)) {
    const auto size = *rc::gen::inRange<std::size_t>(16, 1100);
    const std::string text = value(size, id, version);
    RC_ASSERT(check_value(text, id + 1) == std::nullopt);
    RC_ASSERT(check_value(text, id ^ (std::uint64_t{1} << 63)) == std::nullopt);
    RC_ASSERT(check_value(text.substr(0, size - 1), id) == std::nullopt);
    RC_ASSERT(check_value(text + '\0', id) == std::nullopt);
}

TEST(ValueContent, ZerosAreNoValue) {
    for (const std::size_t size : {2U, 8U, 16U, 100U, 1024U})
        EXPECT_EQ(check_value(std::string(size, '\0'), 0), std::nullopt) << size;
}

// Short checksums miss a foreign value as rarely as their width promises.
TEST(ValueContent, ShortValuesAreCheckedAsWellAsTheyCanBe) {
    int missed = 0;
    for (std::uint64_t id = 0; id < 256 * 64; ++id)
        missed += check_value(value(3, id, 1), id + 1).has_value();
    EXPECT_NEAR(missed, 64, 32);
    for (std::uint64_t id = 0; id < 1000; ++id)
        ASSERT_EQ(check_value(value(12, id, 1), id + 1), std::nullopt);
}

std::size_t gzip_size(const std::string& content) {
    std::vector<char> packed(2 * content.size() + 4096);
    std::size_t used = 0;
    archive* a = archive_write_new();
    archive_write_add_filter_gzip(a);
    archive_write_set_format_raw(a);
    archive_write_open_memory(a, packed.data(), packed.size(), &used);
    archive_entry* entry = archive_entry_new();
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_write_header(a, entry);
    EXPECT_EQ(archive_write_data(a, content.data(), content.size()),
              static_cast<la_ssize_t>(content.size()));
    archive_entry_free(entry);
    archive_write_close(a);
    archive_write_free(a);
    return used;
}

TEST(ValueContent, HalfOfItIsLeftByACompressor) {
    for (const std::size_t size : {100U, 200U, 512U, 1024U, 4096U}) {
        std::string many;
        for (std::uint64_t id = 0; many.size() < 1 << 20; ++id) many += value(size, id, 1);
        const double left = static_cast<double>(gzip_size(many)) / static_cast<double>(many.size());
        RecordProperty(std::to_string(size), std::to_string(left));
        EXPECT_GT(left, .47) << size;
        EXPECT_LT(left, size < 512 ? .60 : .55) << size;
    }
}

} // namespace
