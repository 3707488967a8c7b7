// SPDX-License-Identifier: MIT
//
// changing_load: a load whose records come, go, grow and are all read once while it runs. What each
// operation does is a function of its number and of the client's own draws, in this order:
//
//   1. it belongs to a pass over all records: a read
//   2. a record is due to be deleted: it erases it
//   3. a record is due to be replaced: it erases the oldest, and the client's next request inserts
//      a new one in its place
//   4. else the shares of the operations and the popularity of the positions decide
//
// Client c of N has the operations c, c + N, ...; the insertions of 3 are not counted among them.
// Reads of 4 do not ask for what was deleted.
#pragma once

#include "tools/workload/churn.hpp"
#include "tools/workload/mass_deletion.hpp"
#include "tools/workload/random.hpp"
#include "tools/workload/read_pass.hpp"
#include "tools/workload/value_sizes.hpp"
#include "tools/workload/ycsb_mix.hpp"
#include "tools/ycsb/load.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace obase::tools {

// Which position operation number `k` asks for.
using position_source = std::function<std::uint64_t(std::uint64_t k, workload::random_stream&)>;

struct changing_load {
    std::uint64_t records = 0;
    unsigned clients = 1;
    std::uint64_t seed = 1;
    position_source position;
    // Shares of the operations of 4. Reads are what is left; inserts and scans are not possible.
    workload::operation_mix operations;
    double lone_reads = 0; // share that reads a key that is nowhere else
    workload::size_distribution keys = workload::size_distribution::fixed(30);
    workload::value_sizes values{workload::size_distribution::fixed(1024)};
    double churn_share = 0;
    std::optional<workload::mass_deletion> deletion;
    std::optional<workload::read_pass> pass;
};

// Throws std::invalid_argument for shares that sum up to more than 1, more records than there are
// keys, or what the memory cannot hold. `name`: of the distribution, for the result.
session_load session_load_of(changing_load load, const std::string& name);

} // namespace obase::tools
