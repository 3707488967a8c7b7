// SPDX-License-Identifier: MIT
//
// One run of a key-value workload against one store: load, measure the layout, send traffic and
// watch the windows go by, measure again, verify everything.
//
// The two measurements of the layout are windows of their own in which nothing moves (mode
// observe), so that the addresses afterwards are those of the touches. Page utilization is computed
// three times there:
//
//   by obase      from what the collector saw: bytes of touched objects / pages that hold them
//   by address    from the traffic's own log and the addresses of those objects now, without
//                 anything of the collector: the witness; and for plain pointers the only one
//   by the kernel the same bytes over the pages whose accessed bits were set
//
// An object counts as touched when it was accessed or made in the window. What was made and freed
// again within it is seen by the kernel alone.
//
// While the half of the traffic that counts is sent, the accesses to each record are counted. What was used at
// its end is held against the least memory with which as many requests would have faulted
// (tools/curves/ideal.hpp).
//
// Precondition: the process has not used obase before. It configures the runtime.
#pragma once

#include "tools/ycsb/access_counts.hpp"
#include "tools/ycsb/agreement.hpp"
#include "tools/ycsb/load.hpp"
#include "tools/ycsb/object_map.hpp"
#include "tools/ycsb/process_memory.hpp"
#include "tools/ycsb/settings.hpp"
#include "tools/ycsb/traffic.hpp"
#include "tools/ycsb/value_ledger.hpp"

#include "crestdb/store.hpp"

#include <obase/options.hpp>
#include <obase/runtime.hpp>
#include <obase/statistics.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace obase::tools {

class session {
  public:
    // Throws std::runtime_error when the runtime refuses the settings.
    session(const ycsb_settings& settings, session_load load, const control_group* group);
    ~session();

    // All of it; the JSON of the command. Throws std::runtime_error with one sentence.
    nlohmann::json run();
    // Loads and measures the layout before anything moved: the page utilization of this store's
    // allocator.
    double baseline();

  private:
    struct layout {
        layout_answers answers;
        std::optional<double> by_address_2m;
        std::vector<heat_region> heat;
    };

    void fill();
    layout measure_layout();
    void send_traffic(nlohmann::json& result);
    void note_peak(const memory_sample& sample) { peak_used_ = std::max(peak_used_, sample.used); }
    void verify(client_counts& counts);
    void add_ideal(nlohmann::json& result, std::uint64_t used);
    void collect();
    void configure(run_mode mode, double window_s);
    std::uint64_t records_now() const {
        return load_.records_now ? load_.records_now() : load_.records->count();
    }
    std::string heap_name(std::uintptr_t address) const;

    const ycsb_settings settings_;
    session_load load_;
    std::unique_ptr<crestdb::store> store_;
    runtime* runtime_ = nullptr; // null: plain pointers
    options options_;
    value_ledger ledger_;
    access_counts accesses_;
    memory_meter meter_;
    std::unique_ptr<traffic> traffic_;
    std::uint64_t base_ = 0;      // bytes used before there was a store
    std::uint64_t peak_used_ = 0; // bytes
    double counted_s_ = 0;        // for how long accesses were counted
    bool partial_ = false;
};

} // namespace obase::tools
