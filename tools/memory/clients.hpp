// SPDX-License-Identifier: MIT
//
// memory_clients: threads that send a load of known popularity to a store, at a given rate or as fast
// as they can, check what they read, and count their own major faults.
//
//     memory_clients clients(store, records, asked, settings);
//     clients.start();
//     clients.counts(); // so far, while they run
//     clients.stop();
//
// Threads: all functions by the one that made it.
#pragma once

#include "tools/memory/settings.hpp"
#include "tools/mrc/popularity.hpp"
#include "tools/workload/pace.hpp"
#include "tools/ycsb/fault_counts.hpp"
#include "tools/ycsb/record_set.hpp"

#include "crestdb/store.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace obase::tools {

struct client_totals {
    fault_counts faults;
    workload::lateness late;
    std::uint64_t wrong = 0;   // reads without a value, or with one that is none of the record
    std::uint64_t churned = 0; // records that were deleted and put again

    void add(const client_totals& other) noexcept {
        faults.add(other.faults);
        late.add(other.late);
        wrong += other.wrong;
        churned += other.churned;
    }
};

class memory_clients {
  public:
    memory_clients(crestdb::store& store, const record_set& records, const popularity& asked,
                   const memory_settings& settings);
    ~memory_clients();
    memory_clients(const memory_clients&) = delete;
    memory_clients& operator=(const memory_clients&) = delete;

    void start();
    void stop();
    client_totals counts() const;
    // Why a client gave up; "" if none did.
    std::string failure() const;
    // Reads every record once, in the order of loading, on the calling thread.
    void read_all();

  private:
    class one;

    void run(one& self) noexcept;

    crestdb::store& store_;
    const record_set& records_;
    std::vector<std::unique_ptr<one>> clients_;
    std::vector<std::thread> threads_;
    std::atomic<bool> stopped_{false};
    mutable std::mutex mutex_;
    std::string failure_; // under mutex_
};

} // namespace obase::tools
