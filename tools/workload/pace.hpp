// SPDX-License-Identifier: MIT
//
// pacer: when a client sends its operations, so that N clients together send a given number per
// second. The loop is open: operation k is due at begin + k / rate, whatever became of those before
// it. A client that is late skips nothing, it sends what has become due as fast as it can; how late
// is counted.
//
//     workload::pacer<> pace({.rate = 50'000, .client = c, .clients = 2}, begin_ns);
//     while (!stop)
//         for (std::size_t n = pace.take(64); n > 0; --n) send(next());
//     const workload::lateness late = pace.late();
//
// Client c has the operations c, c + N, c + 2N ...: which ones is known without a word between the
// clients, and does not depend on their speed.
//
// An operation is sent at the end of the millisecond in which it is due, with all others of that
// millisecond: a sleep costs some microseconds of a processor and is up to 100 us longer than asked
// for, so a sleep for each of 250 operations in a millisecond would be most of the load. Lateness
// counts from the end of that millisecond.
//
// The rate may be a sine, as that of RocksDB's mixgraph is.
//
// Not for latencies at microsecond precision: within a millisecond operations come in a burst.
//
// Threads: one pacer for each client's thread; all begin at one time of one clock. Cost: take()
// reads the clock once, and 2 ns for each operation that it hands out.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <stdexcept>
#include <string>

namespace workload {

// Nanoseconds of the clock that never goes back.
struct monotonic_clock {
    std::uint64_t now() const noexcept {
        timespec at{};
        ::clock_gettime(CLOCK_MONOTONIC, &at);
        return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000U +
               static_cast<std::uint64_t>(at.tv_nsec);
    }
    // Until then, or until a signal.
    void sleep_until(std::uint64_t ns) const noexcept {
        timespec until{};
        until.tv_sec = static_cast<std::time_t>(ns / 1'000'000'000U);
        until.tv_nsec = static_cast<long>(ns % 1'000'000'000U);
        ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    }
};

// Of the operations that were handed out.
struct lateness {
    std::uint64_t operations = 0;
    std::uint64_t late = 0; // more than a millisecond after the end of their own
    std::uint64_t worst_ns = 0;
    double total_ns = 0;

    double mean_ns() const noexcept {
        return operations == 0 ? 0 : total_ns / static_cast<double>(operations);
    }
    void add(const lateness& other) noexcept {
        operations += other.operations;
        late += other.late;
        worst_ns = std::max(worst_ns, other.worst_ns);
        total_ns += other.total_ns;
    }
};

struct pace_options {
    double rate = 0; // operations per second, of all clients together
    unsigned client = 0;
    unsigned clients = 1;
    // The rate may be a sine around `rate`: rate + amplitude * sin(frequency * t + phase), t in
    // seconds since the beginning. amplitude <= rate.
    double amplitude = 0; // operations per second
    double frequency = 0; // radians per second
    double phase = 0;     // radians
};

template <class Clock = monotonic_clock>
class pacer {
  public:
    static constexpr std::uint64_t tick_ns = 1'000'000;
    // take() returns after this, so that its caller can stop.
    static constexpr std::uint64_t longest_sleep_ns = 10 * tick_ns;

    // Throws std::invalid_argument for a rate that is no positive number, or a client that is none
    // of the clients. `begin_ns`: of the clock, for all clients the same.
    pacer(const pace_options& options, std::uint64_t begin_ns, Clock clock = {})
        : clock_(clock), options_(options), ns_per_operation_(1e9 / options.rate),
          begin_ns_(begin_ns), next_(options.client), step_(options.clients) {
        if (!(std::isfinite(options.rate) && options.rate > 0))
            throw std::invalid_argument("a rate of " + std::to_string(options.rate) +
                                        " operations per second: more than 0 is expected");
        if (!(options.amplitude >= 0 && options.amplitude <= options.rate &&
              std::isfinite(options.frequency) && std::isfinite(options.phase)))
            throw std::invalid_argument("a rate with an amplitude of " +
                                        std::to_string(options.amplitude) +
                                        " operations per second: from 0 to the rate is expected");
        if (options.client >= options.clients)
            throw std::invalid_argument("client " + std::to_string(options.client) + " of " +
                                        std::to_string(options.clients));
    }

    // How many operations to send now, at most `most`. Where none is due it sleeps, a while, and
    // then the answer may be 0.
    std::size_t take(std::size_t most) {
        std::uint64_t now = clock_.now();
        if (const std::uint64_t due = due_of_next(); due > now) {
            clock_.sleep_until(std::min(due, now + longest_sleep_ns));
            now = clock_.now();
        }
        std::size_t taken = 0;
        for (; taken < most; ++taken, next_ += step_) {
            const std::uint64_t due = due_of_next();
            if (due > now) break;
            count(now - due);
        }
        return taken;
    }

    // The load rested for so long: all that is still to come is due so much later.
    void postpone(std::uint64_t ns) noexcept { begin_ns_ += ns; }

    // The end of the millisecond in which operation number `k` of all clients is due, at a constant
    // rate.
    std::uint64_t due_ns(std::uint64_t k) const noexcept {
        const auto after = static_cast<std::uint64_t>(static_cast<double>(k) * ns_per_operation_);
        return begin_ns_ + (after / tick_ns + 1) * tick_ns;
    }

    // The operation that is handed out next.
    std::uint64_t next() const noexcept { return next_; }
    const lateness& late() const noexcept { return late_; }

  private:
    // Of a sine, how many operations are due by then: the integral of the rate.
    double due_by(double seconds) const noexcept {
        const pace_options& o = options_;
        const double swing =
            o.frequency == 0
                ? seconds * std::sin(o.phase)
                : (std::cos(o.phase) - std::cos(o.frequency * seconds + o.phase)) / o.frequency;
        return o.rate * seconds + o.amplitude * swing;
    }
    std::uint64_t due_of_next() noexcept {
        if (options_.amplitude == 0) return due_ns(next_);
        while (due_by(static_cast<double>(tick_ + 1) * 1e-9 * static_cast<double>(tick_ns)) <=
               static_cast<double>(next_))
            ++tick_;
        return begin_ns_ + (tick_ + 1) * tick_ns;
    }

    void count(std::uint64_t ns) noexcept {
        ++late_.operations;
        late_.late += ns > tick_ns ? 1 : 0;
        late_.worst_ns = std::max(late_.worst_ns, ns);
        late_.total_ns += static_cast<double>(ns);
    }

    Clock clock_;
    pace_options options_;
    double ns_per_operation_;
    std::uint64_t tick_ = 0; // of a sine: in which the next operation is due
    std::uint64_t begin_ns_;
    std::uint64_t next_;
    std::uint64_t step_;
    lateness late_;
};

} // namespace workload
