// SPDX-License-Identifier: MIT
//
// The checks of a client find what they are for: stores that lose, keep, tear or mix up values.
#include "tools/ycsb/client.hpp"

#include "tools/ycsb/load.hpp"
#include "tools/ycsb/verification.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace obase::tools {
namespace {

// A right store of one thread, with a fault to be switched on.
class faulty_store final : public crestdb::store {
  public:
    enum class fault { none, drops_puts, keeps_old_values, tears_values, mixes_up_keys, forgets };
    fault broken = fault::none;

    bool get(std::string_view key, crestdb::callback<void(std::string_view)> use) const override {
        if (broken == fault::forgets && ++calls_ % 100 == 0) return false;
        const auto at = values_.find(key);
        if (at == values_.end()) return false;
        std::string value = at->second.back();
        if (broken == fault::keeps_old_values) value = at->second.front();
        if (broken == fault::tears_values) value[value.size() / 2] ^= 1;
        if (broken == fault::mixes_up_keys) value = values_.begin()->second.back();
        use(value);
        return true;
    }
    bool contains(std::string_view key) const override { return values_.count(key) != 0; }
    bool put(std::string_view key, std::string_view value) override {
        auto& versions = values_[std::string(key)];
        const bool fresh = versions.empty();
        if (broken != fault::drops_puts || ++calls_ % 100 != 0) versions.emplace_back(value);
        return fresh;
    }
    bool update(std::string_view key, std::string_view value) override { return !put(key, value); }
    bool modify(std::string_view key,
                crestdb::callback<std::string_view(std::string_view)> make) override {
        const auto at = values_.find(key);
        if (at == values_.end()) return false;
        put(key, make(broken == fault::keeps_old_values ? at->second.front() : at->second.back()));
        return true;
    }
    bool edit_in_place(std::string_view, crestdb::callback<void(std::span<char>)>) override {
        return false;
    }
    bool erase(std::string_view key) override { return values_.erase(std::string(key)) != 0; }
    std::size_t scan(std::string_view, std::size_t,
                     crestdb::callback<void(std::string_view, std::string_view)>) const override {
        return 0;
    }
    void visit_path(std::string_view,
                    crestdb::callback<void(const void*, std::size_t)>) const override {}
    std::size_t size() const noexcept override { return values_.size(); }
    std::size_t index_bytes() const noexcept override { return 0; }
    std::size_t managed_nodes() const noexcept override { return 0; }
    obase::runtime* runtime() const noexcept override { return nullptr; }

  private:
    std::map<std::string, std::vector<std::string>, std::less<>> values_;
    mutable unsigned calls_ = 0;
};

client_counts counts_with(faulty_store::fault broken, const std::string& workload) {
    ycsb_settings settings;
    settings.records = 200;
    settings.threads = 1;
    settings.workload = workload;
    settings.value_size = 100;
    const session_load load = make_load(settings);
    faulty_store store;
    fill_store(store, *load.records, 1);
    value_ledger ledger(load.records->count() + load.room_for_inserts);
    for (std::uint64_t i = 0; i < load.records->count(); ++i)
        ledger.end_write(i, first_version | value_ledger::present);
    store.broken = broken;
    client one(store, *load.records, ledger, load.source(0), {});
    while (one.operations() < 20'000) one.send_batch();
    return one.counts;
}

// So many reads, and then no more.
class short_source final : public request_source {
  public:
    explicit short_source(unsigned requests) : left_(requests) {}
    request next() override {
        --left_;
        return {operation::read, 0, 0, left_ % 4};
    }
    bool ended() const override { return left_ == 0; }

  private:
    unsigned left_;
};

using fault = faulty_store::fault;

TEST(Client, FindsNothingWrongWithARightStore) {
    for (const char* workload : {"A", "B", "C", "D", "F"}) {
        const client_counts c = counts_with(fault::none, workload);
        EXPECT_EQ(c.lost_writes + c.stale_reads + c.corrupt + c.misses, 0u) << workload;
    }
}

TEST(Client, FindsLostWrites) {
    EXPECT_GT(counts_with(fault::drops_puts, "A").stale_reads, 0u);
    EXPECT_GT(counts_with(fault::drops_puts, "F").lost_writes, 0u);
    EXPECT_GT(counts_with(fault::forgets, "C").lost_writes, 0u);
}

TEST(Client, FindsStaleReads) {
    EXPECT_GT(counts_with(fault::keeps_old_values, "A").stale_reads, 0u);
    EXPECT_GT(counts_with(fault::keeps_old_values, "F").lost_writes, 0u);
}

TEST(Client, FindsCorruptValues) {
    EXPECT_GT(counts_with(fault::tears_values, "C").corrupt, 0u);
    EXPECT_GT(counts_with(fault::mixes_up_keys, "C").corrupt, 0u);
}

ycsb_settings four_records() {
    ycsb_settings settings;
    settings.records = 4;
    settings.value_size = 100;
    return settings;
}

// Two records that are there, one that was erased, one that was never written.
struct verified {
    faulty_store store;
    session_load load = make_load(four_records());
    const record_set& records = *load.records;
    value_ledger ledger{4};
    verified() {
        std::vector<char> key(records.largest_key()), value(records.largest_value());
        for (const std::uint64_t record : {0U, 1U})
            store.put(records.key(record, key), records.value(record, 5, 0, value));
        for (const std::size_t record : {0U, 1U})
            ledger.end_write(record, 5 | value_ledger::present);
        ledger.end_write(2, 3);
    }
    std::string key(std::uint64_t record) const {
        std::vector<char> buffer(records.largest_key());
        return std::string(records.key(record, buffer));
    }
    void put(std::uint64_t record, std::uint64_t version) {
        std::vector<char> buffer(records.largest_value());
        store.put(key(record), records.value(record, version, 0, buffer));
    }
    client_counts counts(bool in_place = false) const {
        return verify_all(store, records, ledger, 4, 2, in_place);
    }
};

TEST(Client, SendsAllThatItsSourceHasAndEnds) {
    verified v;
    client one(v.store, v.records, v.ledger, std::make_unique<short_source>(150), {});
    for (int i = 0; i < 5; ++i) one.send_batch();
    EXPECT_TRUE(one.ended());
    EXPECT_EQ(one.operations(), 150u);
    EXPECT_EQ(one.counts.reads, 150u);
    EXPECT_EQ(one.counts.misses, 74u); // records 2 and 3
}

// Reads and one scan.
class scanning_source final : public request_source {
  public:
    request next() override { return {++sent_ == 10 ? operation::scan : operation::read, 0, 1, 0}; }
    bool ended() const override { return false; }

  private:
    unsigned sent_ = 0;
};

TEST(Client, CountsAccessesAndFaultsWhileTheyAreAskedFor) {
    verified v;
    client one(v.store, v.records, v.ledger, std::make_unique<short_source>(1000), {});
    access_counts counts(4);
    one.send_batch();
    EXPECT_EQ(one.faults.operations, 0u);
    one.accesses = &counts;
    for (int i = 0; i < 9; ++i) one.send_batch();
    one.accesses = nullptr;
    one.send_batch();
    ASSERT_EQ(one.operations(), 11 * 64u);
    for (const std::size_t record : {0U, 1U, 2U, 3U}) EXPECT_EQ(counts.of(record), 9 * 16u);
    EXPECT_TRUE(counts.complete());
    EXPECT_EQ(one.faults.operations, 9 * 64u);
    EXPECT_EQ(one.faults.looked_at, 9u);
}

TEST(Client, DoesNotKnowWhatScansAccess) {
    verified v;
    client one(v.store, v.records, v.ledger, std::make_unique<scanning_source>(), {});
    access_counts counts(4);
    one.accesses = &counts;
    one.send_batch();
    EXPECT_FALSE(counts.complete());
}

TEST(Client, SendsAtTheTimesOfItsPacer) {
    verified v;
    client one(v.store, v.records, v.ledger, std::make_unique<short_source>(1000), {});
    const std::uint64_t begin = workload::monotonic_clock().now();
    one.pace.emplace(workload::pace_options{.rate = 10'000}, begin);
    while (!one.ended()) one.send_batch();
    EXPECT_GE(workload::monotonic_clock().now() - begin, 99'000'000u);
    EXPECT_EQ(one.operations(), 1000u);
    EXPECT_GE(one.pace->late().operations, 1000u);
}

TEST(Verification, AcceptsWhatTheLedgerHas) {
    const client_counts c = verified().counts();
    EXPECT_EQ(c.lost_writes + c.stale_reads + c.corrupt, 0u);
}

TEST(Verification, FindsWhatIsMissing) {
    verified v;
    v.store.erase(v.key(1));
    EXPECT_EQ(v.counts().lost_writes, 1u);
    EXPECT_EQ(v.counts(true).lost_writes, 1u);
}

TEST(Verification, FindsWhatCameBack) {
    verified v;
    v.put(2, 2);
    EXPECT_EQ(v.counts().lost_writes, 1u);
}

TEST(Verification, FindsOldAndTornValues) {
    verified v;
    v.put(0, 4);
    EXPECT_EQ(v.counts().corrupt, 1u);
    EXPECT_EQ(v.counts().lost_writes, 0u);
    v.store.broken = fault::tears_values;
    EXPECT_EQ(v.counts().corrupt, 2u);
    EXPECT_EQ(v.counts(true).corrupt, 0u);
}

TEST(Verification, LooksAtTheLastRecord) {
    verified v;
    v.put(3, 1);
    v.ledger.end_write(3, 2 | value_ledger::present);
    EXPECT_EQ(v.counts().corrupt, 1u);
}

} // namespace
} // namespace obase::tools
