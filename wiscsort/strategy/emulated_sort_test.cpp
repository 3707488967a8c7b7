// SPDX-License-Identifier: MIT
//
// Strategies on emulated devices: their virtual time is what arithmetic says, and is always the same.
#include "wiscsort/device/emulated.hpp"
#include "wiscsort/test_files_test.hpp"
#include "wiscsort/units.hpp"

namespace wiscsort {

namespace {

using model::plan_choice;
using testing::temporary_directory;

struct emulated_run {
    sort_report report;
    std::string output;
};

emulated_run run_on(model::profile profile, plan_choice plan, std::uint64_t records,
                    std::uint64_t memory, bool controlled = true, unsigned threads = 20,
                    std::uint64_t size = 100) {
    std::mt19937_64 random(1);
    std::string bytes(records * size, 'v');
    for (std::size_t i = 0; i < bytes.size(); i += size)
        for (std::size_t j = 0; j < 10; ++j) bytes[i + j] = static_cast<char>(random());
    temporary_directory folder;
    device::emulated_device device(profile);
    sort_options options;
    options.format = record_format::parse(fmt::format("fixed:{}", size));
    options.keys.ranges = {"0:10"};
    options.memory = memory;
    options.threads = threads;
    options.plan = plan;
    options.controlled = controlled;
    options.profile = profile;
    options.device = &device;
    options.sync = false;
    emulated_run result;
    result.report = wiscsort::sort({folder.write("in", bytes)}, folder.path("out"), options);
    result.output = folder.read("out");
    EXPECT_EQ(result.output,
              testing::sorted_by_reference({bytes}, options.format, options.keys, false));
    return result;
}

// Device time alone, and no threads too many, so none are tried: what is left is the arithmetic.
model::profile device_only() {
    model::profile p = model::find_profile("pmem");
    p.read.decline = p.write.decline = 0;
    p.processor = {.extract_seconds = 0,
                   .sort_seconds = 0,
                   .gather_seconds = 0,
                   .merge_seconds = 0,
                   .copy_bytes_per_second = 1e15,
                   .merge_entry_seconds = 0};
    return p;
}

constexpr std::uint64_t records = 400000;
constexpr double n = records;
constexpr double read_rate = 15e9, gather_rate = 11.3e9, write_rate = 3.2e9;

void near(double seconds, double expected) { EXPECT_NEAR(seconds / expected, 1, .02); }

} // namespace

// At stride 100 a key of 10 bytes moves 72 with granules of 64, a record 160.
TEST(EmulatedSort, OnePassTakesWhatTheArithmeticSays) {
    // Ordering a buffer by position costs so much that records are read as they come.
    model::profile p = device_only();
    p.processor.sort_seconds = 1e-8;
    const sort_report r = run_on(p, plan_choice::onepass, records, 32 * MiB).report;
    EXPECT_FALSE(r.plan.offset_order);
    near(r.phases.at("gather"), n * 160 / gather_rate);
    near(r.phases.at("write"), n * 100 / write_rate);
    near(r.phases.at("scan"), n * 72 / read_rate);
    EXPECT_EQ(r.traffic.requested_read, records * 110);
    EXPECT_EQ(r.traffic.requested_write, records * 100);
}

TEST(EmulatedSort, ExternalMergeSortTakesWhatTheArithmeticSays) {
    const sort_report r = run_on(device_only(), plan_choice::ems, records, 32 * MiB).report;
    EXPECT_GT(r.runs, 1U);
    near(r.phases.at("load"), 2 * n * 100 / read_rate);
    near(r.phases.at("runs"), n * 100 / write_rate);
    near(r.phases.at("write"), n * 100 / write_rate);
    // A record that the end of a chunk cuts is read twice.
    EXPECT_NEAR(static_cast<double>(r.traffic.requested_read), n * 200,
                100.0 * static_cast<double>(r.runs));
    EXPECT_EQ(r.traffic.requested_write, records * 200);
}

TEST(EmulatedSort, MergePassMovesKeysAndPointersTwice) {
    const sort_report r = run_on(device_only(), plan_choice::mergepass, records, 4 * MiB).report;
    EXPECT_GT(r.runs, 1U);
    EXPECT_EQ(r.traffic.requested_write, records * 116);
    EXPECT_EQ(r.traffic.requested_read, records * 126);
}

// With an eighth of the input as memory, phases are short and buffers small; they end together all the
// same. (With tasks that threads cannot share evenly, load took 8.5 ms here and not 5.4.)
TEST(EmulatedSort, ShortPhasesEndTogether) {
    const sort_report r = run_on(device_only(), plan_choice::ems, records, 5000000).report;
    EXPECT_NEAR(r.phases.at("load") / (2 * n * 100 / read_rate), 1, .06);
    EXPECT_NEAR((r.phases.at("runs") + r.phases.at("write")) / (2 * n * 100 / write_rate), 1, .05);
    // Records of 4 KiB are few in a buffer.
    const sort_report big =
        run_on(device_only(), plan_choice::onepass, 10000, 8 * MiB, true, 20, 4096).report;
    EXPECT_NEAR(big.phases.at("gather") / (10000 * 4096 / gather_rate), 1, .15);
}

// The slides' figure: .74.
TEST(EmulatedSort, ControlPays) {
    const model::profile pmem = model::find_profile("pmem");
    EXPECT_LT(run_on(pmem, plan_choice::ems, 200000, 3 * MiB).report.seconds,
              .75 * run_on(pmem, plan_choice::ems, 200000, 3 * MiB, false).report.seconds);
}

// Small accesses whose bytes the stream has are no requests: a scan of keys does not wait for each.
TEST(EmulatedSort, KeysOfOneGranuleWaitOnce) {
    model::profile ad = model::find_profile("ad");
    ad.processor = device_only().processor;
    const sort_report r = run_on(ad, plan_choice::onepass, 100000, 16 * MiB).report;
    // 10 MB in pieces of 4 KiB: bytes, and 12 us for each request, eight in flight for each of 20
    // threads at most. With a wait for each key it would be 7.5 ms more.
    EXPECT_LT(r.phases.at("scan"), 1.3 * (1e7 / 3.2e9 + 1e7 / 4096 * 12e-6 / 32));
}

TEST(EmulatedSort, IsTheSameEveryTime) {
    const model::profile pmem = model::find_profile("pmem");
    for (const bool controlled : {true, false})
        EXPECT_EQ(run_on(pmem, plan_choice::ems, 50000, 4 * MiB, controlled).report.seconds,
                  run_on(pmem, plan_choice::ems, 50000, 4 * MiB, controlled).report.seconds);
}

} // namespace wiscsort
