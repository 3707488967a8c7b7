// SPDX-License-Identifier: MIT
#include "tools/workload/trace.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using namespace workload;

class Trace : public ::testing::Test {
  protected:
    Trace() {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "trace_test.XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
        folder_ = pattern;
    }
    ~Trace() override {
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }

    std::string path(const std::string& name) const { return (folder_ / name).string(); }
    std::string file(const std::string& content, const std::string& name = "t.csv") const {
        std::ofstream(path(name), std::ios::binary) << content;
        return path(name);
    }
    trace read(const std::string& content, const trace_options& options = {}) const {
        return read_trace(file(content), options);
    }
    std::string refusal(const std::string& content, const trace_options& options = {}) const {
        try {
            (void)read(content, options);
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "(none)";
    }
    // True if the message names the file and has all parts.
    static void expect_says(const std::string& message, const std::vector<std::string>& parts) {
        for (const std::string& part : parts)
            EXPECT_NE(message.find(part), std::string::npos) << message << "\nwithout " << part;
    }

  private:
    std::filesystem::path folder_;
};

std::string content_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

void compress(const std::string& path, const std::string& content, int (*add_filter)(archive*)) {
    archive* a = archive_write_new();
    ASSERT_EQ(add_filter(a), ARCHIVE_OK);
    ASSERT_EQ(archive_write_set_format_raw(a), ARCHIVE_OK);
    ASSERT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
    archive_entry* entry = archive_entry_new();
    archive_entry_set_filetype(entry, AE_IFREG);
    ASSERT_EQ(archive_write_header(a, entry), ARCHIVE_OK);
    ASSERT_EQ(archive_write_data(a, content.data(), content.size()),
              static_cast<la_ssize_t>(content.size()));
    archive_entry_free(entry);
    ASSERT_EQ(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
}

struct compression {
    const char* name;
    int (*add_filter)(archive*);
};
constexpr compression compressions[] = {{"t.gz", archive_write_add_filter_gzip},
                                        {"t.xz", archive_write_add_filter_xz},
                                        {"t.zst", archive_write_add_filter_zstd}};

std::string long_trace() {
    std::string text;
    unsigned state = 1;
    for (int i = 0; i < 50'000; ++i) {
        state = state * 1664525 + 1013904223;
        text += (state >> 30 != 0 ? "GET," : "PUT,") + std::to_string(state >> 12) + ",48," +
                std::to_string(state >> 8 & 1023) + "\n";
    }
    return text;
}

TEST_F(Trace, OperationsWithKeysNumberedAsTheyAppear) {
    const trace t = read("GET,4855343,48,0\nput,17,48,10\nSeek,4855343,48,0\nDELETE,17,48,0\n"
                         "Merge,5,3,99\nPUT,17,48,20\n");
    EXPECT_EQ(t.format(), trace_format::operations);
    EXPECT_EQ(t.entries(), (std::vector<trace_entry>{{0, 0, 48, operation::read},
                                                     {1, 10, 48, operation::update},
                                                     {0, 0, 48, operation::scan},
                                                     {1, 0, 48, operation::erase},
                                                     {2, 99, 3, operation::read_modify_write},
                                                     {1, 20, 48, operation::update}}));
    EXPECT_EQ(t.records(), (std::vector<trace_record>{{0, 48}, {10, 48}, {99, 3}}));
    EXPECT_EQ(t.keys(), 3U);
}

TEST_F(Trace, AHeaderAndCarriageReturnsAreNoOperations) {
    const trace plain = read("get,1,2,3\nput,4,5,6\n");
    EXPECT_EQ(read("op,keyid,keylen,vallen\nget,1,2,3\nput,4,5,6\n"), plain);
    EXPECT_EQ(read("OP,KEY,K,V\r\nget,1,2,3\r\nput,4,5,6\r\n"), plain);
}

TEST_F(Trace, NumbersUpToTheirLimits) {
    const trace t = read("get,18446744073709551615,65535,4294967295\nget,007,0,0\nget,7,0,0\n");
    EXPECT_EQ(t.entries()[0], (trace_entry{0, 4294967295U, 65535, operation::read}));
    EXPECT_EQ(t.entries()[1].key, t.entries()[2].key);
    expect_says(refusal("get,18446744073709551616,1,1\n"), {"line 1", "key id"});
    expect_says(refusal("get,1,65536,1\n"), {"key length from 0 to 65535", "\"65536\""});
    expect_says(refusal("get,1,1,4294967296\n"), {"value length", "\"4294967296\""});
}

TEST_F(Trace, TwittersCacheTraces) {
    const trace t = read("0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n"
                         "0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,set,86400\n"
                         "1,q:q:1:8WTfjZU14ee,17,0,4,incr,0\n"
                         "1,a,b,c,5,8,5,gets,0\n"
                         "2,a,b,5,8,5,cas,7\n");
    EXPECT_EQ(t.format(), trace_format::twitter);
    EXPECT_EQ(t.entries(), (std::vector<trace_entry>{{0, 213, 17, operation::read},
                                                     {1, 27, 27, operation::update},
                                                     {0, 0, 17, operation::read_modify_write},
                                                     {2, 8, 5, operation::read},
                                                     {3, 8, 5, operation::update}}));
    EXPECT_EQ(read("timestamp,anonymized key,key size,value size,client id,operation,TTL\n"
                   "0,k,1,2,3,get,0\n")
                  .entries(),
              (std::vector<trace_entry>{{0, 2, 1, operation::read}}));
    expect_says(refusal("0,k,1,2,3,get,0\n0,k,1,2,3,get\n"),
                {"t.csv, line 2", "7 columns, not 6", "\"0,k,1,2,3,get\""});
    expect_says(refusal("0,k,1,2,3,got,0\n"), {"line 1", "an operation", "\"got\""});
    expect_says(refusal("0,,1,2,3,get,0\n"), {"a key in the second column"});
    expect_says(refusal("0,k,x,2,3,get,0\n"), {"a key size", "\"x\""});
    expect_says(refusal("x,k,1,2,3,get,0\n"), {"a timestamp", "\"x\""});
}

TEST_F(Trace, KeysOnly) {
    const trace t = read("www.a.org/\nb\nwww.a.org/\n");
    EXPECT_EQ(t.format(), trace_format::keys);
    EXPECT_EQ(t.entries(), (std::vector<trace_entry>{{0, 0, 10, operation::read},
                                                     {1, 0, 1, operation::read},
                                                     {0, 0, 10, operation::read}}));
    expect_says(refusal("a\n\nb\n"), {"line 2", "a key", "\"\""});
}

TEST_F(Trace, BinaryIdsIfAskedFor) {
    const std::string ids("\0\0\0\1\0\0\1\0\0\0\0\1", 12);
    const trace t = read(ids, {.format = trace_format::be32});
    EXPECT_EQ(t.entries(), (std::vector<trace_entry>{{0, 0, 0, operation::read},
                                                     {1, 0, 0, operation::read},
                                                     {0, 0, 0, operation::read}}));
    expect_says(refusal(ids.substr(0, 10), {.format = trace_format::be32}),
                {"t.csv, id 3", "4 bytes", "torn", "\\x00\\x00"});
    expect_says(refusal(ids + "\n"), {"line 1", "be32", "\\x00\\x00\\x00\\x01"});
}

TEST_F(Trace, CacheLibsColumnsInAnyOrder) {
    const trace t = read("op_time,key,key_size,op,op_count,size,ttl\n"
                         "1,a,48,GET,2,87,0\n2,b,24,SET_LEASE,1,5,0\n3,a,48,DELETE,1,0,0\n");
    EXPECT_EQ(t.format(), trace_format::cachelib);
    const std::vector<trace_entry> expected = {{0, 87, 48, operation::read},
                                               {0, 87, 48, operation::read},
                                               {1, 5, 24, operation::update},
                                               {0, 0, 48, operation::erase}};
    EXPECT_EQ(t.entries(), expected);
    EXPECT_EQ(read("op_time,size,op_count,op,key_size,key\n1,87,2,get,48,a\n"
                   "2,5,1,set,24,b\n3,0,1,delete,48,a\n")
                  .entries(),
              expected);
    const std::string header = "op_time,key,key_size,op,op_count,size\n";
    expect_says(refusal("op_time,key,op,op_count,size\n"),
                {"line 1", "a header with the column key_size"});
    expect_says(refusal(header + "1,a,48,GET,1\n"), {"line 2", "6 columns", "not 5"});
    expect_says(refusal(header + "1,a,48,FLY,1,5\n"), {"line 2", "an operation", "FLY"});
    expect_says(refusal(header + "1,a,48,GET,x,5\n"), {"line 2", "a number of operations"});
    expect_says(refusal(header + "1,a,48,GET,1000001,5\n"), {"line 2", "1000000"});
    expect_says(refusal(header + "1,,48,GET,1,5\n"), {"line 2", "a key"});
    expect_says(refusal("1,a,48,GET,1,5\n", {.format = trace_format::cachelib}),
                {"line 1", "a header with the column key"});
    expect_says(refusal(header), {"a header and nothing else"});
    EXPECT_EQ(read(header + "1,a,48,GET,9,5\n", {.max_operations = 4}).entries().size(), 4U);
}

TEST_F(Trace, ArcsBlocks) {
    const trace_options arc{.format = trace_format::arc};
    const trace t = read("100 3 0 1\n101 1 0 2\r\n  7\t1 0 3\n", arc);
    EXPECT_EQ(t.keys(), 4U);
    std::vector<std::uint32_t> keys;
    for (const trace_entry& e : t.entries()) keys.push_back(e.key);
    EXPECT_EQ(keys, (std::vector<std::uint32_t>{0, 1, 2, 1, 3}));
    expect_says(refusal("1 2 3\n", arc), {"line 1", "a request's number"});
    expect_says(refusal("1 1 0 1\n1 2 3 4 5\n", arc), {"line 2", "four numbers"});
    expect_says(refusal("1 x 0 1\n", arc), {"line 1", "a number of blocks", "\"x\""});
    expect_says(refusal("1 99999999 0 1\n", arc), {"line 1", "1000000"});
    expect_says(refusal("1 1 0 1", arc), {"torn"});
}

TEST_F(Trace, OracleRecords) {
    const trace_options oracle{.format = trace_format::oracle};
    const auto record = [](char id, char high_id, char size) {
        return std::string("\1\0\0\0", 4) + id + std::string(6, '\0') + high_id + '\0' + size +
               std::string(2, '\0') + std::string(8, '\xff');
    };
    const trace t = read(record(5, 0, 1) + record(5, 1, 2) + record(5, 0, 1), oracle);
    EXPECT_EQ(t.entries(), (std::vector<trace_entry>{{0, 256, 0, operation::read},
                                                     {1, 512, 0, operation::read},
                                                     {0, 256, 0, operation::read}}));
    expect_says(refusal((record(1, 0, 1) + record(2, 0, 1)).substr(0, 40), oracle),
                {"t.csv, record 2", "24 bytes", "torn"});
    expect_says(refusal("", oracle), {"an empty file"});
}

TEST_F(Trace, AGivenFormatIsNotGuessed) {
    EXPECT_EQ(read("a,b\nc,d\n", {.format = trace_format::keys}).keys(), 2U);
    expect_says(refusal("a\n", {.format = trace_format::operations}), {"4 columns, not 1"});
    EXPECT_EQ(read("0,a,b,1,2,3,get,0\n", {.format = trace_format::twitter}).keys(), 1U);
}

TEST_F(Trace, ReadingEndsAfterSoManyOperations) {
    const trace t = read("get,1,2,3\nput,4,5,6\nthe rest is not looked at", {.max_operations = 2});
    EXPECT_EQ(t.entries().size(), 2U);
    EXPECT_EQ(read("get,1,2,3\n", {.max_operations = 0}).entries().size(), 0U);
}

TEST_F(Trace, MalformedLinesAreNamed) {
    expect_says(refusal("GET,1,2,3\nGET,1,2\n"),
                {"t.csv, line 2: expected", "4 columns, not 3", "found \"GET,1,2\""});
    expect_says(refusal("GET,1,2,3\nGET,1,2,3,4\n"), {"line 2", "not 5"});
    expect_says(refusal("GET,1,2,3\n\n"), {"line 2", "found \"\""});
    expect_says(refusal("JUMP,1,2,3\n"), {"line 1", "an operation (get, put", "\"JUMP\""});
    for (const char* bad : {"-1", "1x", " 1", "", "0x1", "1.5", "nan"})
        expect_says(refusal("GET,1,2,3\nGET," + std::string(bad) + ",2,3\n"),
                    {"line 2", "a key id", "\"" + std::string(bad) + "\""});
    expect_says(refusal("op,keyid,keylen,vallen\nop,keyid,keylen,vallen\n"), {"line 2", "\"op\""});
    expect_says(refusal("a,b\n"), {"line 1", "1 column", "4", "7", "not 2"});
    expect_says(refusal("\x1b[2Jx,2\n"), {"\"\\x1b[2Jx,2\""}); // no escape sequence gets through
    expect_says(refusal(std::string(1 << 20, 'x')), {"at most 262144 bytes", "xxx...\""});
}

TEST_F(Trace, TornAndEmptyFilesAreRefused) {
    expect_says(refusal("GET,1,2,3\nGET,1,2,3"), {"t.csv, line 2", "newline", "torn"});
    expect_says(refusal("GET,1,2,3\nGE"), {"t.csv, line 2", "torn", "\"GE\""});
    expect_says(refusal(""), {"t.csv: expected operations; found an empty file"});
    expect_says(refusal("op,keyid,keylen,vallen\n"), {"a header and nothing else"});
    EXPECT_THROW(read_trace(path("absent")), std::runtime_error);
    EXPECT_THROW(read_trace(path("")), std::runtime_error); // the folder
}

TEST_F(Trace, CompressedIsReadAsPlain) {
    const std::string text = long_trace();
    const trace plain = read(text);
    EXPECT_EQ(plain.entries().size(), 50'000U);
    for (const compression& how : compressions) {
        compress(path(how.name), text, how.add_filter);
        ASSERT_LT(std::filesystem::file_size(path(how.name)), text.size());
        EXPECT_EQ(read_trace(path(how.name)), plain) << how.name;
    }
}

// As after `cat`, or of a compressor with several threads.
TEST_F(Trace, CompressedInSeveralParts) {
    for (const compression& how : compressions) {
        compress(path("part"), "GET,1,2,3\nGE", how.add_filter);
        std::string both = content_of(path("part"));
        compress(path("part"), "T,2,2,3\n", how.add_filter);
        both += content_of(path("part"));
        EXPECT_EQ(read_trace(file(both, how.name)).keys(), 2U) << how.name;
    }
}

// Wherever a compressed file is cut, and even if what was before the cut ends with a line.
TEST_F(Trace, TornCompressedFilesAreRefused) {
    const std::string text = long_trace();
    for (const compression& how : compressions) {
        compress(path(how.name), text, how.add_filter);
        const std::string whole = content_of(path(how.name));
        for (const std::size_t size :
             {std::size_t{1}, std::size_t{5}, std::size_t{20}, whole.size() / 3, whole.size() / 2,
              whole.size() - 100, whole.size() - 9, whole.size() - 1}) {
            try {
                const trace t = read_trace(file(whole.substr(0, size), how.name));
                ADD_FAILURE() << how.name << " cut to " << size << " of " << whole.size()
                              << " bytes gave " << t.entries().size() << " operations";
            } catch (const std::runtime_error& error) {
                expect_says(error.what(), {how.name});
            }
        }
        std::string flipped = whole;
        flipped[whole.size() / 2] = static_cast<char>(flipped[whole.size() / 2] ^ 0x55);
        EXPECT_THROW(read_trace(file(flipped, how.name)), std::runtime_error) << how.name;
    }
}

TEST_F(Trace, Names) {
    for (const char* name :
         {"auto", "operations", "twitter", "keys", "be32", "cachelib", "arc", "oracle"})
        EXPECT_EQ(name_of(trace_format_named(name).value()), name);
    EXPECT_FALSE(trace_format_named("csv"));
}

// Real traces, which are not part of the repository.
class RecordedTrace : public ::testing::Test {
  protected:
    void SetUp() override {
        const char* folder = std::getenv("OBASE_TEST_DATA");
        if (folder == nullptr || *folder == '\0')
            GTEST_SKIP() << "OBASE_TEST_DATA does not name a folder with recorded traces";
        folder_ = folder;
    }
    // Empty, and the test skipped, if it is not there.
    std::string file(const char* name) const {
        return std::filesystem::exists(folder_ / name) ? (folder_ / name).string() : "";
    }

  private:
    std::filesystem::path folder_;
};

TEST_F(RecordedTrace, RocksDbMixgraph) {
    const std::string path = file("mixgraph/dbbench7.8.3_prefix_dist_num5M_1Mops_seed1.csv.zst");
    if (path.empty()) GTEST_SKIP() << "no mixgraph trace in OBASE_TEST_DATA";
    const trace t = read_trace(path);
    EXPECT_EQ(t.entries().size(), 1'000'000U);
    std::array<int, operation_count> seen{};
    for (const trace_entry& e : t.entries()) {
        ++seen.at(static_cast<std::size_t>(e.what));
        ASSERT_EQ(e.key_length, 48);
    }
    EXPECT_EQ(seen[static_cast<std::size_t>(operation::read)], 849'446);
    EXPECT_EQ(seen[static_cast<std::size_t>(operation::update)], 140'399);
    EXPECT_EQ(seen[static_cast<std::size_t>(operation::scan)], 10'155);
}

TEST_F(RecordedTrace, CacheLibsRows) {
    std::size_t operations = 0;
    for (const char* name : {"cachelib/kv_traces_1.csv", "cachelib/kv_traces_2.csv"}) {
        const std::string path = file(name);
        if (path.empty()) GTEST_SKIP() << "no CacheLib traces in OBASE_TEST_DATA";
        operations += read_trace(path).entries().size();
    }
    EXPECT_GE(operations, 198U);
}

TEST_F(RecordedTrace, Cache2kOrmBusy) {
    const std::string path = file("cache2k/orm-busy.trace.xz");
    if (path.empty()) GTEST_SKIP() << "no cache2k trace in OBASE_TEST_DATA";
    EXPECT_EQ(read_trace(path, {.format = trace_format::be32}).entries().size(), 5'000'000U);
}

TEST_F(RecordedTrace, Cache2kWeb12) {
    const std::string path = file("cache2k/web12.trace.xz");
    if (path.empty()) GTEST_SKIP() << "no cache2k trace in OBASE_TEST_DATA";
    const trace t = read_trace(path, {.format = trace_format::be32});
    EXPECT_EQ(t.entries().size(), 95'607U);
    EXPECT_LT(t.keys(), t.entries().size());
}

} // namespace
