// SPDX-License-Identifier: MIT
//
// client: one thread's side of the traffic. Takes requests from its source, sends them to the
// store, checks the answers, and times some of them.
//
// What is checked: every value that is read carries its record, its version and a checksum of all
// its bytes, and the ledger (tools/ycsb/value_ledger.hpp) knows which versions it may have. What is
// timed: every 8th request, with the clock that the kernel offers to user space. While accesses are
// counted, the major faults of every 64th are as well.
//
// Requests follow each other as fast as they can, or at the times of a pacer
// (tools/workload/pace.hpp).
//
// Threads: one; operations() by any.
#pragma once

#include "tools/ycsb/access_counts.hpp"
#include "tools/ycsb/fault_counts.hpp"
#include "tools/ycsb/latency_histogram.hpp"
#include "tools/ycsb/record_set.hpp"
#include "tools/ycsb/request.hpp"
#include "tools/ycsb/value_ledger.hpp"
#include "tools/ycsb/zeroed_array.hpp"

#include "tools/workload/pace.hpp"

#include "crestdb/store.hpp"

#include <obase/word/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace obase::tools {

struct client_counts {
    std::uint64_t reads = 0;       // of one record, found or not
    std::uint64_t misses = 0;      // reads of records that are not there, and rightly so
    std::uint64_t lost_writes = 0; // operations that found nothing, or an older value, to build on
    std::uint64_t stale_reads = 0; // reads that found an older version than was acknowledged
    std::uint64_t corrupt = 0;     // values of another record, torn, or from the future

    void add(const client_counts& other) noexcept {
        reads += other.reads;
        misses += other.misses;
        lost_writes += other.lost_writes;
        stale_reads += other.stale_reads;
        corrupt += other.corrupt;
    }
};

// Which records were touched in a measuring window, by those who know only the traffic: their key
// was looked up or stored, their value read or written.
struct touch_log {
    using flag = word::native_atomic<std::uint8_t>; // several clients set the same one
    explicit touch_log(std::size_t records) : touched(records) {}
    bool was_touched(std::size_t record) const noexcept {
        return touched[record].load_relaxed() != 0;
    }

    zeroed_array<flag> touched; // per record
    flag scanned;               // so the traffic does not know what was touched
    flag written;               // values were made or freed
    flag inserted;              // so an index may have touched other keys, to make room
};

struct client_options {
    bool in_place = false; // updates write into the value object
    bool checks = true;    // off: nothing is looked up in the ledger
};

class client {
  public:
    client(crestdb::store& store, const record_set& records, value_ledger& ledger,
           std::unique_ptr<request_source> source, client_options options);

    // Some requests, not many; none while the pacer has none due, and none once the source has
    // ended, after a short sleep. Throws what the store throws.
    void send_batch();
    std::uint64_t operations() const noexcept { return operations_.load_relaxed(); }
    // The source has no more requests.
    bool ended() const noexcept { return ended_.load_relaxed() != 0; }

    // Public, because the client's owner reads and clears them between batches.
    client_counts counts;
    latency_histogram latencies;
    fault_counts faults;                   // while there are `accesses`
    touch_log* log = nullptr;              // marks what is touched, if there is one
    access_counts* accesses = nullptr;     // counts what is asked for, if there is one
    std::optional<workload::pacer<>> pace; // empty: as fast as it can

  private:
    void one(const request& r);
    std::uint64_t timed(const request& r);
    void count(const request& r);
    void read(std::uint64_t record);
    void write(const request& r);
    void scan(const request& r);
    void note(const request& r);
    void check(std::uint64_t record, bool found, value_ledger::entry before);

    crestdb::store& store_;
    const record_set& records_;
    value_ledger& ledger_;
    const client_options options_;
    std::unique_ptr<request_source> source_;
    word::native_atomic<std::uint64_t> operations_;
    word::native_atomic<std::uint32_t> ended_;
    std::vector<char> key_;    // of the request
    std::vector<char> fresh_;  // value to write
    std::vector<char> answer_; // value read
    std::size_t answer_size_ = 0;
    unsigned turn_ = 0;
    value_ledger::entry unchecked_writes_ = 0; // versions without checks
};

} // namespace obase::tools
