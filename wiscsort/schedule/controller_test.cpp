// SPDX-License-Identifier: MIT
//
// How many threads each operation gets: as the profile says, and corrected by what they move.
#include "wiscsort/schedule/controller.hpp"

#include <gtest/gtest.h>

namespace wiscsort::schedule {

namespace {

constexpr operation all[] = {operation::scan, operation::load, operation::gather, operation::write,
                             operation::compute};

// Rounds of 8 MiB of writes at rates that `rate` gives for a number of threads.
template <class Rate>
void write_rounds(controller& c, int rounds, Rate rate) {
    constexpr std::uint64_t bytes = 8 << 20;
    for (int i = 0; i < rounds; ++i)
        c.observed(operation::write, bytes,
                   static_cast<double>(bytes) / rate(c.threads(operation::write)));
}

} // namespace

TEST(Controller, UncontrolledEveryOperationHasAllThreads) {
    controller c(model::find_profile("pmem"), 20, false, {});
    for (const operation op : all) EXPECT_EQ(c.threads(op), 20U);
    // And keeps them.
    write_rounds(c, 100, [](unsigned threads) { return 1e9 / threads; });
    EXPECT_EQ(c.threads(operation::write), 20U);
}

TEST(Controller, BeginsWithWhatTheProfileSays) {
    const model::profile pmem = model::find_profile("pmem");
    const controller c(pmem, 20, true, {});
    EXPECT_EQ(c.threads(operation::write), model::profile::best_pool(pmem.write, 20, 0).threads);
    EXPECT_LT(c.threads(operation::write), 20U);
    EXPECT_EQ(c.threads(operation::compute), 20U);
    // Never more than there are.
    const controller two(pmem, 2, true, {});
    for (const operation op : all) EXPECT_LE(two.threads(op), 2U);
    // More threads cost nothing.
    model::profile flat = pmem;
    flat.read.decline = flat.write.decline = 0;
    const controller many(flat, 20, true, {});
    for (const operation op : all) EXPECT_EQ(many.threads(op), 20U);
}

TEST(Controller, CorrectsItselfByWhatIsMoved) {
    const model::profile pmem = model::find_profile("pmem");
    for (const unsigned best : {2U, 9U}) {
        controller c(pmem, 20, true, {});
        const auto rate = [&](unsigned threads) {
            return threads <= best ? 1e9 * threads : 1e9 * best / (1 + .2 * (threads - best));
        };
        write_rounds(c, 2000, rate);
        // Between trials it is at the best; a trial is one more or less.
        int at_best = 0;
        for (int i = 0; i < 100; ++i) {
            write_rounds(c, 1, rate);
            const unsigned now = c.threads(operation::write);
            EXPECT_LE(now, best + 1);
            EXPECT_GE(now + 1, best);
            at_best += now == best;
        }
        EXPECT_GT(at_best, 80);
    }
    // Short rounds tell nothing.
    controller c(pmem, 20, true, {});
    const unsigned before = c.threads(operation::write);
    for (int i = 0; i < 100; ++i) c.observed(operation::write, 1000, 1e-9 * (i % 7));
    EXPECT_EQ(c.threads(operation::write), before);
}

} // namespace wiscsort::schedule
