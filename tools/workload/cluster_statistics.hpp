// SPDX-License-Identifier: MIT
//
// What is published of each of Twitter's cache clusters in place of its trace: a table in Markdown,
// one line for a cluster, whose first line names the columns. A load made from it is synthetic: one
// size of keys and one of values, the means, and a power law.
//
//     const auto c = workload::read_cluster_statistics("stat_2020Mar.md", 11);
//     workload::power_law_ids ranks(records, c.zipf_exponent);
//
// Source of the format: https://github.com/twitter/cache-trace, stat/; J. Yang et al., A Large Scale
// Analysis of Hundreds of In-memory Cache Clusters at Twitter, OSDI 2020.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace workload {

struct cluster_statistics {
    std::uint64_t key_size = 0; // means, in bytes
    std::uint64_t value_size = 0;
    double zipf_exponent = 0;
    // Shares of the operations; reads are the rest. What the table leaves out are the rarest.
    double updates = 0;
    double read_modify_writes = 0;
    double deletes = 0;
};

// Throws std::runtime_error, naming file, line, what was expected and what came: for a file that
// cannot be read, a table without a column that is needed, a cluster that is not in it or whose
// statistics are not published (N/A).
cluster_statistics read_cluster_statistics(const std::string& path, std::uint64_t cluster);
// The same for a text; `name` for messages.
cluster_statistics parse_cluster_statistics(std::string_view text, const std::string& name,
                                            std::uint64_t cluster);

} // namespace workload
