// SPDX-License-Identifier: MIT
//
// traffic: clients on threads of their own, that can be told to rest and to go on.
//
//     traffic load(std::move(clients));
//     load.resume(); ... load.pause(); ... load.resume(); ... load.stop();
//
// Threads: all functions by the one that made it.
#pragma once

#include "tools/ycsb/client.hpp"

#include <obase/word/atomic.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace obase::tools {

class traffic {
  public:
    // The threads begin at rest.
    explicit traffic(std::vector<std::unique_ptr<client>> clients);
    // stop() if need be.
    ~traffic();
    traffic(const traffic&) = delete;
    traffic& operator=(const traffic&) = delete;

    void resume();
    // Returns when no client is in an operation.
    void pause();
    void stop();

    // So far, while running too.
    std::uint64_t operations() const noexcept;
    // True: all sources have ended.
    bool ended() const noexcept;
    // The others: at rest only.
    client_counts counts() const;
    latency_histogram latencies() const;
    void clear_latencies();
    fault_counts faults() const;
    // All clients together send at that rate from now on; a rate of 0: as fast as they can. Which
    // client it is for does not matter.
    void set_pace(const workload::pace_options& pace);
    // Since set_pace().
    workload::lateness late() const;
    // Marks what is touched from now on. Null: no more.
    void set_log(touch_log* log);

    // Counts what is asked for from now on, and looks at faults. Null: no more.
    void set_accesses(access_counts* counts);

    // Why a client gave up, and with it all; "" if none did. A store without memory, for one.
    std::string failure() const;

  private:
    enum class command : std::uint32_t { pause, run, stop };

    void run(client& self) noexcept;

    std::vector<std::unique_ptr<client>> clients_;
    std::vector<std::thread> threads_;
    word::native_atomic<command> command_{command::pause};
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t parked_ = 0; // under mutex_
    std::string failure_;    // under mutex_
};

} // namespace obase::tools
