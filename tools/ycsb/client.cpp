// SPDX-License-Identifier: MIT
#include "tools/ycsb/client.hpp"

#include "tools/bench/stopwatch.hpp"

#include "os/thread.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <string_view>
#include <thread>

namespace obase::tools {
namespace {

constexpr std::size_t batch_size = 64;
constexpr unsigned timed_every = 8;
// Two looks cost about as much as a fast request.
constexpr unsigned looked_at_every = 64;
static_assert(looked_at_every % timed_every == 0);

} // namespace

client::client(crestdb::store& store, const record_set& records, value_ledger& ledger,
               std::unique_ptr<request_source> source, client_options options)
    : store_(store), records_(records), ledger_(ledger), options_(options),
      source_(std::move(source)), key_(records.largest_key()), fresh_(records.largest_value()),
      answer_(records.largest_value()) {}

void client::send_batch() {
    if (ended()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return;
    }
    const std::size_t wanted = pace ? pace->take(batch_size) : batch_size;
    std::size_t sent = 0;
    for (; sent < wanted; ++sent) {
        if (source_->ended()) {
            ended_.store_relaxed(1);
            break;
        }
        const request r = source_->next();
        ++turn_;
        if (turn_ % timed_every != 0) {
            one(r);
        } else if (accesses == nullptr || turn_ % looked_at_every != 0) {
            timed(r);
        } else {
            const std::uint64_t before = os::thread_major_faults();
            const std::uint64_t ns = timed(r);
            faults.note(os::thread_major_faults() - before, static_cast<double>(ns));
        }
    }
    if (accesses != nullptr) faults.operations += sent;
    operations_.store_relaxed(operations_.load_relaxed() + sent);
}

std::uint64_t client::timed(const request& r) {
    const double begin = wall_ns();
    one(r);
    const auto ns = static_cast<std::uint64_t>(wall_ns() - begin);
    latencies.add(ns);
    return ns;
}

void client::one(const request& r) {
    if (log != nullptr) note(r);
    if (accesses != nullptr) count(r);
    switch (r.what) {
    case operation::read:
        return read(r.record);
    case operation::scan:
        return scan(r);
    default:
        return write(r);
    }
}

void client::note(const request& r) {
    if (r.what == operation::scan) log->scanned.store_relaxed(1);
    if (r.what != operation::read && r.what != operation::scan) log->written.store_relaxed(1);
    if (r.what == operation::insert) log->inserted.store_relaxed(1);
    if (r.record < log->touched.size()) log->touched[r.record].store_relaxed(1);
}

void client::count(const request& r) {
    if (r.what == operation::scan) accesses->note_scan();
    accesses->note(r.record);
}

void client::scan(const request& r) {
    const std::string_view from = records_.key(r.record, key_);
    store_.scan(from, r.scan_length, [&](std::string_view, std::string_view value) {
        std::memcpy(answer_.data(), value.data(), std::min(value.size(), answer_.size()));
    });
}

void client::read(std::uint64_t record) {
    ++counts.reads;
    const value_ledger::entry before = options_.checks ? ledger_.look(record) : 0;
    const std::string_view key = records_.key(record, key_);
    const bool found = store_.get(key, [&](std::string_view value) {
        // What a client gets is a copy.
        answer_size_ = std::min(value.size(), answer_.size());
        std::memcpy(answer_.data(), value.data(), answer_size_);
    });
    if (options_.checks) check(record, found, before);
}

void client::check(std::uint64_t record, bool found, value_ledger::entry before) {
    const value_ledger::entry after = ledger_.look(record);
    if (!found) {
        if (value_ledger::lost(before, after))
            ++counts.lost_writes;
        else
            ++counts.misses;
        return;
    }
    const auto version = records_.check(record, {answer_.data(), answer_size_});
    if (!version) {
        if (!options_.in_place) ++counts.corrupt; // else a mix of two versions is no error
    } else if (*version != record_set::any_version) {
        if (value_ledger::stale(before, *version)) ++counts.stale_reads;
        if (value_ledger::from_the_future(after, *version)) ++counts.corrupt;
    }
}

void client::write(const request& r) {
    const std::string_view key = records_.key(r.record, key_);
    const value_ledger::entry before = options_.checks
                                           ? ledger_.begin_write(r.record)
                                           : ++unchecked_writes_ & value_ledger::version_bits;
    const value_ledger::entry version = (before & value_ledger::version_bits) + 1;
    value_ledger::entry now = version | value_ledger::present;
    bool was_there = true;
    if (r.what == operation::erase) {
        was_there = store_.erase(key);
        now = before & value_ledger::version_bits;
    } else {
        const std::string_view value = records_.value(r.record, version, r.value_size, fresh_);
        if (r.what == operation::read_modify_write) {
            was_there = store_.modify(key, [&](std::string_view old) {
                // A client that modifies has read.
                answer_size_ = std::min(old.size(), answer_.size());
                std::memcpy(answer_.data(), old.data(), answer_size_);
                if (options_.checks) {
                    const auto found = records_.check(r.record, old);
                    if (!found || (*found != record_set::any_version && *found != version - 1))
                        ++counts.lost_writes;
                }
                return value;
            });
            if (!was_there) now = before;
        } else if (options_.in_place && r.what == operation::update) {
            was_there = store_.edit_in_place(key, [&](std::span<char> old) {
                std::memcpy(old.data(), value.data(), std::min(old.size(), value.size()));
            });
            if (!was_there) now = before;
        } else {
            was_there = !store_.put(key, value);
        }
    }
    if (options_.checks) {
        ledger_.end_write(r.record, now);
        if (was_there != ((before & value_ledger::present) != 0)) ++counts.lost_writes;
    }
    if (r.what == operation::insert) source_->inserted(r.record);
}

} // namespace obase::tools
