// SPDX-License-Identifier: MIT
#include "wiscsort/device/emulated.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <thread>

namespace wiscsort::device {

namespace {

// The participant that this thread is; none outside of parallel().
thread_local unsigned self = 0;

} // namespace

void emulated_device::parallel(unsigned threads, const std::function<void(unsigned)>& body) {
    std::vector<std::unique_ptr<participant>> all;
    for (unsigned i = 0; i < threads; ++i) all.push_back(std::make_unique<participant>());
    std::exception_ptr first;
    std::unique_lock hold(lock_);
    for (const auto& one : all) participants_.push_back(one.get());
    const auto run = [&](unsigned number) {
        self = number;
        std::unique_lock mine(lock_);
        participant& me = *all[number];
        me.turn.wait(mine, [&] { return turn_ == number; });
        mine.unlock();
        try {
            body(number);
        } catch (...) {
            if (!first) first = std::current_exception();
        }
        mine.lock();
        me.state = states::done;
        hand_over();
    };
    std::vector<std::thread> started;
    started.reserve(threads);
    for (unsigned number = 0; number < threads; ++number) started.emplace_back(run, number);
    hand_over();
    all_done_.wait(hold, [&] { return turn_ == nobody; });
    participants_.clear();
    hold.unlock();
    for (std::thread& thread : started) thread.join();
    if (first) std::rethrow_exception(first);
}

// The turn goes to the first that is ready, after as much time as it takes until one is.
void emulated_device::hand_over() {
    for (;;) {
        bool unfinished = false;
        for (unsigned i = 0; i < participants_.size(); ++i) {
            if (participants_[i]->state == states::ready) {
                turn_ = i;
                participants_[i]->turn.notify_one();
                return;
            }
            unfinished = unfinished || participants_[i]->state != states::done;
        }
        if (!unfinished) break;
        advance();
    }
    turn_ = nobody;
    all_done_.notify_one();
}

// To the next moment at which a wait ends or a transfer begins or ends.
void emulated_device::advance() {
    unsigned reads = 0, writes = 0;
    for (const participant* p : participants_)
        if (p->state == states::transferring && p->seconds <= 0)
            ++(p->dir == direction::read ? reads : writes);
    const double read_rate = reads == 0 ? 0 : profile_.read.capacity(reads, writes > 0) / reads;
    const double write_rate = writes == 0 ? 0 : profile_.write.capacity(writes, reads > 0) / writes;
    const auto rate = [&](const participant& p) {
        return p.dir == direction::read ? read_rate : write_rate;
    };
    double step = std::numeric_limits<double>::infinity();
    for (const participant* p : participants_) {
        if (p->state != states::sleeping && p->state != states::transferring) continue;
        step = std::min(step, p->seconds > 0 ? p->seconds : p->bytes / rate(*p));
    }
    now_ += step;
    for (participant* p : participants_) {
        if (p->state != states::sleeping && p->state != states::transferring) continue;
        if (p->seconds > 0) {
            // The one that decided the step is done exactly, whatever rounding leaves.
            p->seconds = p->seconds <= step ? 0 : p->seconds - step;
            if (p->seconds <= 0 && p->state == states::sleeping) p->state = states::ready;
        } else if (const double r = rate(*p); p->bytes / r <= step * (1 + 1e-12)) {
            p->state = states::ready;
        } else {
            p->bytes -= r * step;
        }
    }
}

void emulated_device::wait(waiting what) {
    std::unique_lock hold(lock_);
    if (participants_.empty()) {
        // Outside of parallel(): nothing else happens meanwhile.
        participant alone;
        static_cast<waiting&>(alone) = what;
        participants_.push_back(&alone);
        while (alone.state != states::ready) advance();
        participants_.clear();
        return;
    }
    const unsigned me = self;
    participant& mine = *participants_[me];
    static_cast<waiting&>(mine) = what;
    hand_over();
    mine.turn.wait(hold, [&] { return turn_ == me; });
}

void emulated_device::charge(const access& a) {
    count(a);
    const model::direction_profile& d = a.dir == direction::read ? profile_.read : profile_.write;
    const std::uint64_t at_once = profile_.requests_per_thread;
    const auto waits = static_cast<double>((a.waits + at_once - 1) / at_once);
    if (a.waits == 0) return;
    waiting what;
    what.state = states::transferring;
    what.dir = a.dir;
    what.seconds = waits * d.latency_seconds;
    what.bytes = std::max(a.cost, 1e-9);
    wait(what);
}

void emulated_device::work(double seconds) {
    if (seconds <= 0) return;
    waiting what;
    what.state = states::sleeping;
    what.seconds = seconds;
    wait(what);
}

} // namespace wiscsort::device
