// SPDX-License-Identifier: MIT
#include "tools/workload/cachelib_config.hpp"

#include "tools/workload/popularity_buckets.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace workload;

// A folder with a configuration that is right; a test spoils one file of it.
class CachelibConfig : public ::testing::Test {
  protected:
    void SetUp() override {
        folder_ = std::filesystem::path(::testing::TempDir()) /
                  ("cachelib_config_" + std::to_string(::getpid()));
        std::filesystem::create_directories(folder_);
        write("config.json", R"({"cache_config": {"cacheSizeMB": 1}, "test_config": {
            "keySizeRange": [16, 20, 30], "keySizeRangeProbability": [0.5, 0.5],
            "numKeys": 1000, "popDistFile": "pop.json", "valSizeDistFile": "sizes.json",
            "getRatio": 0.6, "setRatio": 0.2, "loneGetRatio": 0.2}})");
        write("pop.json", R"({"oneHits": 0.1, "popularityBuckets": [1, 99],
                              "popularityWeights": [70, 30]})");
        write("sizes.json", R"({"valSizeRange": [31, 63, 200000],
                                "valSizeRangeProbability": [5, 4, 1]})");
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    void write(const std::string& name, const std::string& text) {
        std::ofstream(folder_ / name) << text;
    }
    cachelib_config read() const { return read_cachelib_config(folder_.string()); }
    std::string complaint() const {
        try {
            read();
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "";
    }

    std::filesystem::path folder_;
};

TEST_F(CachelibConfig, IsReadAsItStands) {
    const cachelib_config config = read();
    EXPECT_DOUBLE_EQ(config.gets, .6);
    EXPECT_DOUBLE_EQ(config.sets, .2);
    EXPECT_DOUBLE_EQ(config.deletes, 0);
    EXPECT_DOUBLE_EQ(config.lone_gets, .2);
    EXPECT_EQ(config.bucket_keys, (std::vector<std::uint64_t>{1, 99}));
    EXPECT_EQ(config.bucket_weights, (std::vector<double>{70, 30}));
    // Ranges, whose ends are not included; and sizes.
    EXPECT_EQ(config.key_sizes.at(0), 16U);
    EXPECT_EQ(config.key_sizes.at(.499), 19U);
    EXPECT_EQ(config.key_sizes.at(.501), 20U);
    EXPECT_EQ(config.key_sizes.largest(), 29U);
    EXPECT_EQ(config.value_sizes.at(.49), 31U);
    EXPECT_EQ(config.value_sizes.at(.89), 63U);
    EXPECT_EQ(config.value_sizes.at(.91), 200'000U);
}

TEST_F(CachelibConfig, SharesAreOfAllOperations) {
    write("config.json", R"({"test_config": {"keySizeRange": [16, 20],
        "keySizeRangeProbability": [1], "popDistFile": "pop.json", "valSizeDistFile": "sizes.json",
        "getRatio": 3, "delRatio": 1}})");
    EXPECT_DOUBLE_EQ(read().gets, .75);
    EXPECT_DOUBLE_EQ(read().deletes, .25);
}

TEST_F(CachelibConfig, WhatIsWrongIsNamedWithFileAndPlace) {
    struct spoiled {
        const char* file;
        const char* text;
        const char* named;
    };
    for (const spoiled& s : {
             spoiled{"pop.json", "{\n\"popularityBuckets\": [1,\n", "pop.json, line 3"},
             spoiled{"pop.json", "[]", "expected an object"},
             spoiled{"pop.json", R"({"popularityBuckets": [1], "popularityWeights": ["x"]})",
                     "popularityWeights[0]"},
             spoiled{"pop.json", R"({"popularityBuckets": [1.5], "popularityWeights": [1]})",
                     "popularityBuckets[0]"},
             spoiled{"pop.json", R"({"popularityBuckets": [1, 2], "popularityWeights": [1]})",
                     "as many numbers"},
             spoiled{"pop.json", R"({"popularityBuckets": [1, 2]})", "popularityWeights"},
             spoiled{"sizes.json", R"({"valSizeRange": [5, 3, 9, 1],
                     "valSizeRangeProbability": [1, 1, 1]})",
                     "valSizeRange: sizes from 5 to 3"},
             spoiled{"sizes.json", R"({"valSizeRange": [5, 3, 9],
                     "valSizeRangeProbability": [1]})",
                     "expected 3 or one less; found 1"},
             spoiled{"sizes.json", R"({"valSizeRange": [], "valSizeRangeProbability": []})",
                     "a list of numbers"},
             spoiled{"config.json", "{}", "test_config"},
             spoiled{"config.json", R"({"test_config": {"getRatio": -1}})", "getRatio"},
             spoiled{"config.json", R"({"test_config": {"getRatio": 0}})", "above 0"},
         }) {
        SetUp();
        write(s.file, s.text);
        const std::string message = complaint();
        EXPECT_NE(message.find(s.file), std::string::npos) << message;
        EXPECT_NE(message.find(s.named), std::string::npos) << s.text << ": " << message;
    }
    SetUp();
    std::filesystem::remove(folder_ / "sizes.json");
    EXPECT_NE(complaint().find("sizes.json: cannot be read"), std::string::npos) << complaint();
}

// The published configurations, where they are.
TEST(CachelibData, TheCachesOfMeta) {
    const char* folder = std::getenv("OBASE_TEST_DATA");
    if (folder == nullptr) GTEST_SKIP() << "OBASE_TEST_DATA is not set";
    const std::filesystem::path data = std::filesystem::path(folder) / "cachelib";
    if (!std::filesystem::exists(data)) GTEST_SKIP() << "no such data";
    const cachelib_config kvcache = read_cachelib_config((data / "kvcache_reg").string());
    EXPECT_EQ(kvcache.bucket_keys.size(), 805U);
    EXPECT_NEAR(kvcache.lone_gets / kvcache.gets, .1347 / .9845, 1e-3);
    EXPECT_EQ(kvcache.value_sizes.largest(), 523'487U);
    const popularity_buckets ranks(kvcache.bucket_keys, kvcache.bucket_weights, 10'483'642);
    EXPECT_NEAR(ranks.share_below(1), 27638685. / 417229820, 1e-9);
    const cachelib_config graph =
        read_cachelib_config((data / "graph_cache_leader_fbobj").string());
    EXPECT_EQ(graph.bucket_keys.size(), 296U);
    EXPECT_EQ(graph.key_sizes.largest(), 63U);
}

} // namespace
