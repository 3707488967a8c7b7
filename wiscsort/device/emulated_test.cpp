// SPDX-License-Identifier: MIT
//
// The emulated device against closed forms.
#include "wiscsort/device/emulated.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace wiscsort::device {

namespace {

model::profile simple() {
    model::profile p;
    p.read = {.bytes_per_second = 1000,
              .threads_at_peak = 4,
              .decline = .1,
              .floor = .5,
              .overlap_share = .5,
              .latency_seconds = 0};
    p.write = {.bytes_per_second = 400,
               .threads_at_peak = 2,
               .decline = .1,
               .floor = .5,
               .overlap_share = .25,
               .latency_seconds = .5};
    p.granule = 10;
    p.random_share = .5;
    p.requests_per_thread = 2;
    return p;
}

void transfer(device& d, direction dir, std::uint64_t bytes, std::uint64_t at = 0) {
    stream s(d, dir);
    s.sequential(at, bytes);
    s.flush();
}

double readers(unsigned threads) {
    emulated_device d(simple());
    d.parallel(threads, [&](unsigned) { transfer(d, direction::read, 1000); });
    return d.now();
}

} // namespace

TEST(Emulated, CapacityRisesToItsPeakAndFallsToItsFloor) {
    EXPECT_NEAR(readers(1), 4.0, 1e-9);      // a quarter of the peak
    EXPECT_NEAR(readers(4), 4.0, 1e-9);      // the peak, for four
    EXPECT_NEAR(readers(6), 6 / .8, 1e-9);   // two too many
    EXPECT_NEAR(readers(20), 20 / .5, 1e-9); // the floor
}

TEST(Emulated, ThreadsThatEndEarlyLeaveTheirShare) {
    emulated_device d(simple());
    d.parallel(4, [&](unsigned i) { transfer(d, direction::read, i == 0 ? 2000 : 1000); });
    // All at 250/s for 4 s; then one alone at a quarter of the peak.
    EXPECT_NEAR(d.now(), 4 + 1000 / 250.0, 1e-9);
}

TEST(Emulated, DirectionsHamperEachOther) {
    emulated_device d(simple());
    d.parallel(6, [&](unsigned i) {
        if (i < 4)
            transfer(d, direction::read, 1000);
        else
            transfer(d, direction::write, 200);
    });
    // .5 s of latency, in which reads have the peak: 3500 are left. Then 500/s against 100/s: writes
    // need 4 s; reads have 1500 left and end them at the peak.
    EXPECT_NEAR(d.now(), .5 + 4 + 1500 / 1000.0, 1e-9);
}

TEST(Emulated, LatencyIsPaidForEachRequestNotInFlight) {
    emulated_device d(simple());
    stream s(d, direction::write);
    for (int i = 0; i < 5; ++i) s.sequential(0, 10);
    s.flush();
    EXPECT_NEAR(d.now(), 3 * .5 + 50 / 200.0, 1e-9);
}

TEST(Emulated, ProcessorTimeRunsBesideTransfers) {
    emulated_device d(simple());
    d.parallel(2, [&](unsigned i) {
        if (i == 0)
            d.work(3);
        else
            transfer(d, direction::read, 1000);
    });
    EXPECT_NEAR(d.now(), 4, 1e-9);
}

TEST(Emulated, AStreamPaysForGranulesOnce) {
    emulated_device d(simple());
    stream s(d, direction::read);
    s.touch(0, 4);   // granule 0, contiguous with the beginning
    s.touch(4, 4);   // paid
    s.touch(8, 4);   // granule 1
    s.touch(35, 2);  // granule 3: one is skipped, still contiguous
    s.touch(95, 10); // granules 9 and 10: random, twice the cost
    s.flush();
    EXPECT_EQ(d.counted().requested_read, 24U);
    EXPECT_EQ(d.counted().moved_read, 50U);
    EXPECT_NEAR(d.now(), (30 + 20 / .5) / 250, 1e-9);
}

TEST(Emulated, AnExceptionReachesTheCaller) {
    emulated_device d(simple());
    EXPECT_THROW(d.parallel(3,
                            [&](unsigned i) {
                                transfer(d, direction::read, 100);
                                if (i == 1) throw std::runtime_error("one");
                            }),
                 std::runtime_error);
    EXPECT_NEAR(d.now(), 300 / 750.0, 1e-9);
}

} // namespace wiscsort::device
