// SPDX-License-Identifier: MIT
//
// The workloads that CacheLib's cachebench is configured with, among them those of Meta's caches: a
// folder with config.json and the files that it names.
//
//   config.json        test_config: getRatio, setRatio, delRatio, loneGetRatio; keySizeRange and
//                      keySizeRangeProbability; popDistFile and valSizeDistFile
//   popDistFile        popularityBuckets (numbers of keys), popularityWeights
//   valSizeDistFile    valSizeRange, valSizeRangeProbability: as many of both are sizes and their
//                      weights, one bound more than weights are ranges
//
//     const auto config = workload::read_cachelib_config("kvcache_reg");
//     workload::popularity_buckets ranks(config.bucket_keys, config.bucket_weights, records);
//
// A lone get asks for a key that is nowhere else in the load. addChainedRatio, and what configures
// the cache, is not looked at; numKeys neither: the load is scaled to the number of records asked for.
#pragma once

#include "tools/workload/size_distribution.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace workload {

struct cachelib_config {
    // Shares of the operations; their sum is 1.
    double gets = 0;
    double sets = 0;
    double deletes = 0;
    double lone_gets = 0;
    size_distribution key_sizes = size_distribution::fixed(16);
    size_distribution value_sizes = size_distribution::fixed(0);
    std::vector<std::uint64_t> bucket_keys;
    std::vector<double> bucket_weights;
};

// Throws std::runtime_error, naming the file, where in it, what was expected and what came.
cachelib_config read_cachelib_config(const std::string& folder);

} // namespace workload
