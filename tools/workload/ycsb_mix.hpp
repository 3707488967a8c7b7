// SPDX-License-Identifier: MIT
//
// The requests of YCSB's core workloads, one stream per thread.
//
//   workload   operations                       distribution   (YCSB 0.17, workloads/workload[a-f])
//   A          .50 read .50 update              zipfian
//   B          .95 read .05 update              zipfian
//   C          read                             zipfian
//   D          .95 read .05 insert              latest
//   E          .95 scan .05 insert              zipfian        scans of 1..100 records, uniform
//   F          .50 read .50 read-modify-write   zipfian
//
// Any other mix of operations, and any distribution with any mix, is possible. Each request draws
// its operation anew, so the shares hold on average. Records 0 .. records - 1 are loaded before;
// inserts take new ids in order, and no request asks for a record whose insertion was not reported
// as completed (insert_counter.hpp). As in YCSB, uniform and hotspot ask for loaded records only,
// so does loop, and zipfian scatters its requests over records + expected_inserts ids and draws
// again for one that is not there yet.
//
//     workload::request_plan plan({.records = 1'000'000,
//                                  .operations = workload::ycsb('B')->operations,
//                                  .ids = workload::distribution::loop, .threads = 2});
//     workload::request_stream stream = plan.stream(thread);
//     for (;;) {
//         const workload::request r = stream.next();
//         ...
//         if (r.what == workload::operation::insert) stream.completed(r.id);
//     }
//
// Closed loop: requests come as fast as they are taken, and do not depend on the answers. With
// erase in the mix, erased ids are asked for again.
//
// Threads: a plan is made by one thread, outlives its streams, and serves stream() to all; a stream
// belongs to one thread. The same seed and number of threads give each stream the same requests,
// without inserts; with them, as far as threads insert in the same order.
// Cost (workload_bench) per request: loop and uniform 4 ns, hotspot 9, latest 28, zipfian 54.
// Memory: that of loop_sequence, and 1 MiB if there are inserts.
// Source: B. Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010, section 4.
#pragma once

#include "tools/workload/distribution.hpp"
#include "tools/workload/insert_counter.hpp"
#include "tools/workload/loop_sequence.hpp"
#include "tools/workload/operation.hpp"
#include "tools/workload/random.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace workload {

// Shares of the requests; their sum is 1.
struct operation_mix {
    double read = 0;
    double update = 0;
    double insert = 0;
    double scan = 0;
    double read_modify_write = 0;
    double erase = 0;

    bool operator==(const operation_mix&) const = default;
};

struct ycsb_workload {
    operation_mix operations;
    distribution ids; // YCSB's own choice
};

// 'A' .. 'F', or small letters; nothing for any other.
std::optional<ycsb_workload> ycsb(char letter) noexcept;

struct request {
    operation what;
    std::uint32_t scan_length; // of a scan, else 0
    std::uint64_t id;          // of a scan, the first
};

struct request_options {
    std::uint64_t records = 0;
    operation_mix operations{.read = 1};
    distribution ids = distribution::zipfian;
    unsigned threads = 1;
    std::uint64_t seed = 1;
    double live_share = .31;            // loop
    double hot_data_fraction = .2;      // hotspot
    double hot_operation_fraction = .8; // hotspot
    std::uint64_t expected_inserts = 0; // zipfian; YCSB takes twice the inserts of its run
    std::uint32_t max_scan_length = 100;
};

class request_stream;

class request_plan {
  public:
    // Throws std::invalid_argument and says what was expected: no records, no threads, shares that
    // are negative or do not sum up to 1, fractions outside [0, 1], scans of length 0.
    explicit request_plan(const request_options& options);

    // For thread number `thread`, below options.threads.
    request_stream stream(unsigned thread);

    const request_options& options() const noexcept { return options_; }
    // How many records are there now: loaded, and inserted without a gap.
    std::uint64_t records() const noexcept {
        return inserts_ != nullptr ? inserts_->end() : options_.records;
    }
    // The sequence of `loop`; null for other distributions.
    const loop_sequence* loop() const noexcept { return loop_.get(); }

  private:
    friend class request_stream;

    request_options options_;
    // Operation i for draws below limits_[i], up to last_, which takes the rest.
    std::array<std::uint64_t, operation_count> limits_{};
    std::size_t first_ = 0;
    std::size_t last_ = 0;
    std::unique_ptr<insert_counter> inserts_; // null if the mix has none
    std::unique_ptr<loop_sequence> loop_;
    uniform_ids uniform_;
    hotspot_ids hotspot_;
    scrambled_zipfian zipfian_;
    latest_ids latest_; // to be copied: it changes as records are added
};

class request_stream {
  public:
    request next() {
        std::size_t what = plan_->first_;
        if (what != plan_->last_) {
            const std::uint64_t draw = random_.next();
            while (what < plan_->last_ && draw >= plan_->limits_[what]) ++what;
        }
        request result{static_cast<operation>(what), 0, 0};
        if (result.what == operation::insert) {
            result.id = plan_->inserts_->take();
            return result;
        }
        if (result.what == operation::scan)
            result.scan_length =
                1 + static_cast<std::uint32_t>(random_.below(plan_->options_.max_scan_length));
        result.id = next_id();
        return result;
    }

    // The record `id` that an insert took is there. Required for every insert, and in every thread
    // before its next one is taken, or no request will ask for the newer records.
    void completed(std::uint64_t id) { plan_->inserts_->completed(id); }

  private:
    friend class request_plan;

    request_stream(request_plan& plan, unsigned thread);

    std::uint64_t next_id() {
        switch (plan_->options_.ids) {
        case distribution::uniform:
            return plan_->uniform_.next(random_);
        case distribution::hotspot:
            return plan_->hotspot_.next(random_);
        case distribution::latest:
            return latest_.next(random_, plan_->records());
        case distribution::loop: {
            const std::uint64_t id = loop_ids_[at_];
            at_ = at_ + 1 == period_ ? 0 : at_ + 1;
            return id;
        }
        case distribution::zipfian:
            break;
        }
        for (;;) {
            const std::uint64_t id = plan_->zipfian_.next(random_);
            // The first is for free; the second reads what other threads write.
            if (id < plan_->options_.records || id < plan_->records()) return id;
        }
    }

    request_plan* plan_;
    random_stream random_;
    latest_ids latest_;
    const std::uint32_t* loop_ids_ = nullptr;
    std::size_t period_ = 0;
    std::size_t at_ = 0;
};

} // namespace workload
