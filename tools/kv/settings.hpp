// SPDX-License-Identifier: MIT
//
// What `obase bench kv` is asked for. One struct, whose defaults are the command's.
#pragma once

#include "tools/ycsb/settings.hpp"

#include <string>

namespace obase::tools {

struct kv_settings {
    // Records, sizes, index, protocol, clients, seed, windows, hints: what `bench ycsb` has too.
    ycsb_settings store;
    std::string workload = "hot"; // NAME[:PARAMETER=VALUE,...]
    double rate = 0;              // operations per second of all clients; 0: as fast as they can
    double seconds = 30;
    std::string policy; // papers or graded; "": the environment's, or the built-in one
    std::string record; // file to write the operations into; "": none
    std::string replay; // file of recorded operations, replaces the workload; "": none
};

} // namespace obase::tools
