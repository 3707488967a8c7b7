// SPDX-License-Identifier: MIT
#include "tools/memory/clients.hpp"

#include "tools/bench/interrupt.hpp"
#include "tools/bench/stopwatch.hpp"
#include "tools/workload/random.hpp"

#include "os/thread.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>

namespace obase::tools {
namespace {

constexpr std::size_t batch = 64;
// At full speed one operation in so many is looked at (fault_counts.hpp).
constexpr unsigned of_every = 8;
constexpr double longest_absence_ns = 10e9;

} // namespace

class memory_clients::one {
  public:
    one(crestdb::store& store, const record_set& records, popularity::stream asked,
        const memory_settings& settings, unsigned number)
        : store_(store), records_(records), asked_(asked),
          chooses_(settings.seed + 7919 * (number + 1)), update_share_(settings.update_share),
          churn_share_(settings.churn_share),
          pace_({settings.operations_per_second(), number, settings.threads}),
          key_(records.largest_key()), fresh_(records.largest_value()),
          answer_(records.largest_value()) {}

    void begin(std::uint64_t now_ns) {
        if (pace_.rate > 0) pacer_.emplace(pace_, now_ns);
    }

    void send_some() {
        const std::size_t some = pacer_ ? pacer_->take(batch) : batch;
        for (std::size_t i = 0; i < some; ++i) {
            if (!pacer_ && ++turn_ % of_every != 0) {
                send();
                continue;
            }
            const std::uint32_t record = asked_.next();
            const std::uint64_t faults = os::thread_major_faults();
            const double begun = wall_ns();
            send(record);
            const double ns = wall_ns() - begun;
            now_.faults.note(os::thread_major_faults() - faults, ns);
        }
        now_.faults.operations += some;
        if (pacer_) now_.late = pacer_->late();
        const std::lock_guard guard(mutex_);
        published_ = now_;
    }

    client_totals totals() const {
        const std::lock_guard guard(mutex_);
        return published_;
    }

  private:
    void send() { send(asked_.next()); }
    void send(std::uint32_t record) {
        if (churn_share_ > 0 && chooses_.unit() < churn_share_) {
            churn();
            return;
        }
        const std::string_view key = records_.key(record, key_);
        if (update_share_ > 0 && chooses_.unit() < update_share_) {
            const bool was_new = store_.put(key, records_.value(record, ++version_, 0, fresh_));
            if (was_new && churn_share_ == 0) ++now_.wrong;
            return;
        }
        const std::optional<std::size_t> size = read(key);
        if (!size || !records_.check(record, {answer_.data(), *size})) ++now_.wrong;
    }
    // A record that is deleted is back as soon as its client has put it.
    std::optional<std::size_t> read(std::string_view key) {
        for (double until = 0;;) {
            std::size_t size = 0;
            const bool found = store_.get(key, [&](std::string_view value) {
                // What a client gets is a copy.
                size = std::min(value.size(), answer_.size());
                std::memcpy(answer_.data(), value.data(), size);
            });
            if (found) return size;
            if (until == 0) until = wall_ns() + longest_absence_ns;
            if (churn_share_ == 0 || wall_ns() > until) return {};
            std::this_thread::yield();
        }
    }
    // The record's key, node and value are new ones afterwards.
    void churn() {
        const auto record = static_cast<std::uint32_t>(chooses_.below(records_.count()));
        const std::string_view key = records_.key(record, key_);
        if (!store_.erase(key)) return; // another client has just deleted it
        store_.put(key, records_.value(record, ++version_, 0, fresh_));
        ++now_.churned;
    }

    crestdb::store& store_;
    const record_set& records_;
    popularity::stream asked_;
    workload::random_stream chooses_;
    const double update_share_;
    const double churn_share_;
    const workload::pace_options pace_;
    std::optional<workload::pacer<>> pacer_;
    std::vector<char> key_;    // of the operation
    std::vector<char> fresh_;  // value to write
    std::vector<char> answer_; // value read
    std::uint64_t version_ = 1;
    unsigned turn_ = 0;
    client_totals now_;
    mutable std::mutex mutex_;
    client_totals published_; // under mutex_
};

memory_clients::memory_clients(crestdb::store& store, const record_set& records,
                               const popularity& asked, const memory_settings& settings)
    : store_(store), records_(records) {
    for (unsigned t = 0; t < settings.threads; ++t)
        clients_.push_back(std::make_unique<one>(
            store, records, asked.stream_of(t, settings.threads), settings, t));
}

memory_clients::~memory_clients() { stop(); }

void memory_clients::start() {
    const std::uint64_t now = workload::monotonic_clock().now();
    for (auto& c : clients_) c->begin(now);
    for (auto& c : clients_) threads_.emplace_back([this, self = c.get()] { run(*self); });
}

void memory_clients::stop() {
    stopped_.store(true);
    for (std::thread& t : threads_)
        if (t.joinable()) t.join();
}

client_totals memory_clients::counts() const {
    client_totals sum;
    for (const auto& c : clients_) sum.add(c->totals());
    return sum;
}

std::string memory_clients::failure() const {
    const std::lock_guard guard(mutex_);
    return failure_;
}

void memory_clients::run(one& self) noexcept {
    try {
        while (!stopped_.load()) self.send_some();
    } catch (const std::exception& error) {
        const std::lock_guard guard(mutex_);
        if (failure_.empty()) failure_ = error.what();
        stopped_.store(true);
    }
}

void memory_clients::read_all() {
    std::vector<char> key(records_.largest_key()), answer(records_.largest_value());
    for (std::uint64_t record = 0; record < records_.count() && !interrupted(); ++record)
        store_.get(records_.key(record, key), [&](std::string_view value) {
            std::memcpy(answer.data(), value.data(), std::min(value.size(), answer.size()));
        });
}

} // namespace obase::tools
