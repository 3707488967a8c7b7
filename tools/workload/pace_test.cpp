// SPDX-License-Identifier: MIT
#include "tools/workload/pace.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <vector>

namespace {

using namespace workload;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t begin = 7'000 * ms + 123;

// Time that passes only in sleeps, and when the test says so.
struct fake_time {
    std::uint64_t now = begin;
    std::uint64_t sleeps = 0;
    std::uint64_t longest = 0;
};

struct fake_clock {
    fake_time* time;
    std::uint64_t now() const noexcept { return time->now; }
    void sleep_until(std::uint64_t ns) const noexcept {
        ++time->sleeps;
        if (ns > time->now) {
            time->longest = std::max(time->longest, ns - time->now);
            time->now = ns;
        }
    }
};

using fake_pacer = pacer<fake_clock>;

// The operations of one client up to `until`, each with the time at which it was handed out.
struct sent {
    std::uint64_t operation;
    std::uint64_t at;
};
std::vector<sent> run(fake_pacer& pace, fake_time& time, unsigned step, std::uint64_t until) {
    std::vector<sent> all;
    while (time.now < until) {
        std::uint64_t k = pace.next();
        for (std::size_t n = pace.take(64); n > 0; --n, k += step) all.push_back({k, time.now});
    }
    return all;
}

TEST(Pace, ClientsShareTheOperationsAndSendEachWithinItsMillisecond) {
    for (const double rate : {5'000., 50'000., 333'333., 500'000.}) {
        constexpr unsigned clients = 3;
        std::vector<int> times(static_cast<std::size_t>(rate), 0);
        for (unsigned c = 0; c < clients; ++c) {
            fake_time time;
            fake_pacer pace({.rate = rate, .client = c, .clients = clients}, begin, {&time});
            for (const sent& s : run(pace, time, clients, begin + 1100 * ms)) {
                const double due =
                    static_cast<double>(begin) + static_cast<double>(s.operation) / rate * 1e9;
                ASSERT_GE(static_cast<double>(s.at), due - 1) << "too early";
                ASSERT_LE(static_cast<double>(s.at), due + 1. * ms + 1) << "too late";
                if (s.operation < times.size()) ++times[s.operation];
            }
            EXPECT_EQ(pace.late().late, 0U);
            EXPECT_EQ(pace.late().worst_ns, 0U);
        }
        for (const int n : times) ASSERT_EQ(n, 1);
    }
}

// A sleep for each operation would be most of the load.
TEST(Pace, SleepsOnceInAMillisecond) {
    fake_time time;
    fake_pacer pace({.rate = 500'000}, begin, {&time});
    run(pace, time, 1, begin + 100 * ms);
    EXPECT_LE(time.sleeps, 101U);
    EXPECT_GE(time.sleeps, 99U);
}

TEST(Pace, NeverSleepsLongSoThatAClientCanBeStopped) {
    fake_time time;
    fake_pacer pace({.rate = .5}, begin, {&time});
    const auto all = run(pace, time, 1, begin + 7'000 * ms);
    EXPECT_EQ(time.longest, fake_pacer::longest_sleep_ns);
    EXPECT_EQ(all.size(), 4U); // at 0, 2, 4, 6 s
}

TEST(Pace, WhoIsLateSkipsNothingAndIsCounted) {
    fake_time time;
    fake_pacer pace({.rate = 10'000}, begin, {&time});
    run(pace, time, 1, begin + 100 * ms);
    const std::uint64_t before = pace.next();
    time.now += 500 * ms; // the client had no processor
    const std::uint64_t since = time.now;
    const auto all = run(pace, time, 1, since + 1);
    ASSERT_GT(all.size(), 4'900U);
    EXPECT_EQ(all.front().operation, before);
    EXPECT_EQ(all[4'900].at, since); // without a sleep between
    EXPECT_NEAR(static_cast<double>(all.size()), 5'000, 20);
    EXPECT_NEAR(static_cast<double>(pace.late().worst_ns), 500. * ms, 1. * ms);
    EXPECT_NEAR(static_cast<double>(pace.late().late), 5'000, 30);
    EXPECT_NEAR(pace.late().mean_ns(), 5'000. / 6'000 * 250 * ms, 5. * ms);
}

TEST(Pace, ARestMakesNothingLate) {
    fake_time time;
    fake_pacer pace({.rate = 10'000}, begin, {&time});
    run(pace, time, 1, begin + 100 * ms);
    const std::uint64_t before = pace.next();
    time.now += 500 * ms;
    pace.postpone(500 * ms);
    const auto all = run(pace, time, 1, time.now + 10 * ms);
    EXPECT_NEAR(static_cast<double>(all.size()), 100, 10);
    EXPECT_EQ(all.front().operation, before);
    EXPECT_EQ(pace.late().late, 0U);
}

TEST(Pace, TakesNoMoreThanAsked) {
    fake_time time;
    fake_pacer pace({.rate = 10'000}, begin, {&time});
    time.now += 50 * ms;
    EXPECT_EQ(pace.take(7), 7U);
    EXPECT_EQ(pace.take(7), 7U);
    EXPECT_EQ(pace.next(), 14U);
}

// The operations of a quarter of a period are the integral of its sine: rate +- amplitude * 2 / pi.
TEST(Pace, FollowsASine) {
    constexpr double pi = 3.14159265358979;
    std::uint64_t total = 0;
    for (unsigned c = 0; c < 2; ++c) {
        fake_time time;
        fake_pacer pace({.rate = 10'000,
                         .client = c,
                         .clients = 2,
                         .amplitude = 8'000,
                         .frequency = 2 * pi,
                         .phase = 0},
                        begin, {&time});
        std::vector<double> quarters;
        for (std::uint64_t q = 1; q <= 8; ++q)
            quarters.push_back(
                static_cast<double>(run(pace, time, 2, begin + q * 250 * ms).size()));
        for (std::size_t q = 0; q < 8; ++q)
            EXPECT_NEAR(quarters[q], (2'500 + (q % 4 < 2 ? 1 : -1) * 2'000 * 2 / pi) / 2, 12) << q;
        EXPECT_EQ(pace.late().late, 0U);
        total += pace.late().operations;
    }
    EXPECT_NEAR(static_cast<double>(total), 20'000, 20);
    EXPECT_THROW(pacer<>({.rate = 1, .amplitude = 2}, 0), std::invalid_argument);
}

// A day at the highest rate: no drift.
TEST(Pace, IsExactAfterADay) {
    const pacer<> pace({.rate = 500'000}, begin);
    const std::uint64_t k = 500'000ULL * 86'400;
    EXPECT_EQ(pace.due_ns(k), begin + 86'400'000 * ms + ms);
}

TEST(Pace, LatenessAddsUp) {
    lateness a{.operations = 1, .late = 1, .worst_ns = 5, .total_ns = 5};
    a.add({.operations = 3, .late = 0, .worst_ns = 9, .total_ns = 11});
    EXPECT_EQ(a.operations, 4U);
    EXPECT_EQ(a.late, 1U);
    EXPECT_EQ(a.worst_ns, 9U);
    EXPECT_DOUBLE_EQ(a.mean_ns(), 4);
    EXPECT_EQ(lateness{}.mean_ns(), 0);
}

TEST(Pace, RefusesWhatIsNoRateAndNoClient) {
    for (const double rate : {0., -1., std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()})
        EXPECT_THROW(pacer<>({.rate = rate}, 0), std::invalid_argument) << rate;
    EXPECT_THROW(pacer<>({.rate = 1, .client = 2, .clients = 2}, 0), std::invalid_argument);
    EXPECT_THROW(pacer<>({.rate = 1, .client = 0, .clients = 0}, 0), std::invalid_argument);
}

// The shipped clock: a fifth of a second at 50,000 operations a second.
TEST(Pace, RunsOnTheRealClockWithoutBurningAProcessor) {
    const monotonic_clock clock;
    const std::uint64_t start = clock.now();
    pacer<> pace({.rate = 50'000}, start);
    timespec cpu_before{}, cpu_after{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_before);
    std::uint64_t operations = 0;
    while (operations < 10'000) operations += pace.take(64);
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu_after);
    EXPECT_GE(clock.now() - start, 199 * ms);
    const double cpu_ms = static_cast<double>(cpu_after.tv_sec - cpu_before.tv_sec) * 1e3 +
                          static_cast<double>(cpu_after.tv_nsec - cpu_before.tv_nsec) * 1e-6;
    EXPECT_LT(cpu_ms, 100);
}

} // namespace
