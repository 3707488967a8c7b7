// SPDX-License-Identifier: MIT
#include "tools/ycsb/traffic.hpp"

#include <algorithm>
#include <exception>

namespace obase::tools {

traffic::traffic(std::vector<std::unique_ptr<client>> clients) : clients_(std::move(clients)) {
    for (auto& c : clients_) threads_.emplace_back([this, self = c.get()] { run(*self); });
    pause();
}

traffic::~traffic() { stop(); }

void traffic::resume() {
    const std::lock_guard guard(mutex_);
    if (command_.load_relaxed() == command::pause) command_.store_release(command::run);
    changed_.notify_all();
}

void traffic::pause() {
    std::unique_lock lock(mutex_);
    if (command_.load_relaxed() == command::run) command_.store_release(command::pause);
    changed_.wait(lock, [this] { return parked_ == clients_.size(); });
}

void traffic::stop() {
    {
        const std::lock_guard guard(mutex_);
        command_.store_release(command::stop);
        changed_.notify_all();
    }
    for (std::thread& t : threads_)
        if (t.joinable()) t.join();
}

std::uint64_t traffic::operations() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& c : clients_) sum += c->operations();
    return sum;
}

bool traffic::ended() const noexcept {
    return std::all_of(clients_.begin(), clients_.end(), [](const auto& c) { return c->ended(); });
}

void traffic::set_pace(const workload::pace_options& pace) {
    const std::uint64_t begin = workload::monotonic_clock().now();
    workload::pace_options own = pace;
    own.clients = static_cast<unsigned>(clients_.size());
    own.client = 0;
    for (auto& c : clients_) {
        if (pace.rate > 0)
            c->pace.emplace(own, begin);
        else
            c->pace.reset();
        ++own.client;
    }
}

workload::lateness traffic::late() const {
    workload::lateness sum;
    for (const auto& c : clients_)
        if (c->pace) sum.add(c->pace->late());
    return sum;
}

client_counts traffic::counts() const {
    client_counts sum;
    for (const auto& c : clients_) sum.add(c->counts);
    return sum;
}

latency_histogram traffic::latencies() const {
    latency_histogram sum;
    for (const auto& c : clients_) sum.merge(c->latencies);
    return sum;
}

void traffic::clear_latencies() {
    for (auto& c : clients_) c->latencies.clear();
}

fault_counts traffic::faults() const {
    fault_counts sum;
    for (const auto& c : clients_) sum.add(c->faults);
    return sum;
}

void traffic::set_accesses(access_counts* counts) {
    for (auto& c : clients_) c->accesses = counts;
}

void traffic::set_log(touch_log* log) {
    for (auto& c : clients_) c->log = log;
}

std::string traffic::failure() const {
    const std::lock_guard guard(mutex_);
    return failure_;
}

void traffic::run(client& self) noexcept {
    for (;;) {
        if (command_.load_acquire() != command::run) {
            std::unique_lock lock(mutex_);
            ++parked_;
            changed_.notify_all();
            changed_.wait(lock, [this] { return command_.load_relaxed() != command::pause; });
            if (command_.load_relaxed() == command::stop) return; // and counts as parked
            --parked_;
        }
        try {
            self.send_batch();
        } catch (const std::exception& error) {
            const std::lock_guard guard(mutex_);
            if (failure_.empty()) failure_ = error.what();
            command_.store_release(command::stop);
            ++parked_;
            changed_.notify_all();
            return;
        }
    }
}

} // namespace obase::tools
