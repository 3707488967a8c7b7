// SPDX-License-Identifier: MIT
//
// kv_run: fills a store, sends a load to it for a while, and writes down each window.
//
// Precondition: the process has not used obase before. It configures the runtime.
#pragma once

#include "tools/kv/load.hpp"
#include "tools/kv/page_faults.hpp"
#include "tools/kv/settings.hpp"
#include "tools/ycsb/process_memory.hpp"
#include "tools/ycsb/traffic.hpp"
#include "tools/ycsb/value_ledger.hpp"

#include "crestdb/store.hpp"

#include <obase/options.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>

namespace obase {
class runtime;
}

namespace obase::tools {

class kv_run {
  public:
    // Throws std::runtime_error when the runtime refuses the settings.
    kv_run(const kv_settings& settings, kv_load load, const control_group* group);
    ~kv_run();

    // The JSON of the command. Throws std::runtime_error with one sentence.
    nlohmann::json run();

  private:
    void send_traffic(nlohmann::json& result);
    memory_sample sample();

    const kv_settings settings_;
    kv_load load_;
    options options_;
    std::unique_ptr<crestdb::store> store_;
    runtime* runtime_ = nullptr; // null: plain pointers
    value_ledger ledger_;
    memory_meter meter_;
    std::unique_ptr<traffic> traffic_;
    std::uint64_t peak_used_ = 0; // bytes
    bool partial_ = false;
};

} // namespace obase::tools
