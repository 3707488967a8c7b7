// SPDX-License-Identifier: MIT
//
// The model of `obase bench m2t` where its numbers are known, and a smoke run of every layout.
#include "tools/m2t/m2t.hpp"

#include "heap/sanitized.hpp"
#include "tools/m2t/table_client.hpp"
#include "tools/m2t/tiered_memory_model.hpp"
#include "tools/workload/key_format.hpp"

#include "crestdb/store.hpp"
#include "crestdb/store_server/store_server.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace obase::tools {
namespace {

const char* at(std::size_t page, std::size_t line = 0) {
    return reinterpret_cast<const char*>(std::uintptr_t{0x7000'0000'0000} + page * 4096 +
                                         line * 64);
}

TEST(tiered_memory_model, what_fits_is_missed_once) {
    tiered_memory_model model({.cache_bytes = 64 << 10});
    for (int round = 0; round < 3; ++round)
        for (std::size_t page = 0; page < 16; ++page)
            for (std::size_t line = 0; line < 64; ++line) model.access(at(page, line), 8);
    EXPECT_EQ(model.counts().accesses, 3u * 1024);
    EXPECT_EQ(model.counts().cache_misses, 1024u);
    EXPECT_EQ(model.counts().tlb_misses, 16u);
    EXPECT_EQ(model.counts().pages, 16u);
    EXPECT_EQ(model.counts().far_misses, 0u);
}

TEST(tiered_memory_model, what_does_not_fit_is_missed_each_time) {
    tiered_memory_model model({.cache_bytes = 64 << 10});
    constexpr std::size_t pages = 2 * tiered_memory_model::tlb_entries;
    for (int round = 0; round < 2; ++round)
        for (std::size_t page = 0; page < pages; ++page) model.access(at(page), 64);
    EXPECT_EQ(model.counts().cache_misses, 2 * pages);
    EXPECT_EQ(model.counts().tlb_misses, 2 * pages);
}

TEST(tiered_memory_model, an_object_over_two_lines_is_two_accesses) {
    tiered_memory_model model({});
    model.access(at(0) + 60, 8);
    EXPECT_EQ(model.counts().accesses, 2u);
    EXPECT_EQ(model.counts().pages, 1u);
}

// The first pages are local; a far one that is missed twice in a window changes places with the local one that was
// used least recently.
TEST(tiered_memory_model, pages_that_are_missed_come_near) {
    tiered_memory_model model(
        {.cache_bytes = 1 << 10, .footprint_pages = 10, .local_share = .5, .window = 1});
    for (std::size_t page = 0; page < 10; ++page) model.touch(at(page), 8);
    model.access(at(0), 8);
    EXPECT_EQ(model.counts().far_misses, 0u);
    model.access(at(9, 1), 8);
    model.access(at(9, 2), 8);
    EXPECT_EQ(model.counts().far_misses, 2u);
    model.operation();
    EXPECT_EQ(model.counts().migrated_pages, 2u);
    model.access(at(9, 3), 8);
    EXPECT_EQ(model.counts().far_misses, 2u) << "it is local now";
    model.access(at(0, 5), 8);
    EXPECT_EQ(model.counts().far_misses, 2u) << "it was used";
}

TEST(tiered_memory_model, does_not_depend_on_where_memory_is_mapped) {
    const auto misses = [](std::size_t first_page) {
        tiered_memory_model model({.cache_bytes = 16 << 10});
        for (std::size_t i = 0; i < 20'000; ++i)
            model.access(at(first_page + i * i % 701, i % 64), 8);
        return model.counts().cache_misses;
    };
    EXPECT_EQ(misses(0), misses(12'345));
}

m2t_settings small() {
    m2t_settings s;
    s.records = 3'000;
    s.operations = 2'000;
    s.per_bucket = {1, 64};
    s.cache_bytes = 16 << 10;
    s.pairs = 2;
    s.tiers = {"dram", "model"}; // no swap is made
    s.hints.clear();
    return s;
}

TEST(m2t, every_layout_has_its_cells) {
    const bench_result result = bench_m2t(small());
    EXPECT_FALSE(result.partial);
    std::size_t model = 0;
    for (const auto& cell : result.json["cells"]) {
        EXPECT_GT(cell["throughput_ops"].get<double>(), 0) << cell;
        EXPECT_GT(cell["ratio"].get<double>(), 0) << cell;
        EXPECT_GT(cell["bytes_per_record"].get<double>(), 500) << cell;
        if (cell["tier"] != "model") continue;
        ++model;
        EXPECT_GE(cell["visits_per_op"].get<double>(), 1) << cell;
        EXPECT_GT(cell["tlb_misses_per_op"].get<double>() + cell["llc_misses_per_op"].get<double>(),
                  0);
    }
    const std::size_t skipped = result.json["skipped_layouts"].size();
    EXPECT_EQ(model, 2 * (m2t_layouts().size() - skipped));
    EXPECT_EQ(result.json["cells"].size(), 2 * model);
    EXPECT_GE(result.json["claims"].size(), 19u);
}

// What lies together is on fewer pages, whatever the machine is.
TEST(m2t, near_touches_fewer_pages_than_malloc) {
    m2t_settings s = small();
    s.layouts = {"malloc", "near-meta"};
    s.tiers = {"model"};
    s.per_bucket = {64};
    s.records = 20'000;
    const bench_result result = bench_m2t(s);
    const auto& cells = result.json["cells"];
    ASSERT_EQ(cells.size(), 2u);
    EXPECT_EQ(cells[0]["visits_per_op"], cells[1]["visits_per_op"]);
    EXPECT_GT(cells[0]["tlb_misses_per_op"].get<double>(),
              2 * cells[1]["tlb_misses_per_op"].get<double>());
    EXPECT_GT(cells[1]["ratio"].get<double>(), 1);
}

TEST(m2t, every_workload_runs) {
    m2t_settings s = small();
    s.layouts = {"malloc", "near", "near-meta+temperature"};
    s.tiers = {"dram"};
    s.workloads = {"A", "B", "D", "F"};
    s.per_bucket = {8};
    s.pairs = 1;
    EXPECT_EQ(bench_m2t(s).json["cells"].size(), 12u);
    s.workloads = {"C"};
    s.theta = 2;
    EXPECT_EQ(bench_m2t(s).json["cells"].size(), 3u);
    s.theta = .99;
    s.distribution = "loop";
    EXPECT_EQ(bench_m2t(s).json["cells"].size(), 3u);
}

// Property: hints that are right are no worse than none at the end, those that are wrong are overridden, and what is
// cold leaves memory whatever was said.
TEST(m2t, hints_have_a_row_for_each_window) {
    if (heap::sanitized) GTEST_SKIP() << "the sanitizer's memory is resident too";
    m2t_settings s = small();
    s.layouts = {"malloc"};
    s.tiers = {"model"};
    s.per_bucket = {1};
    s.records = 20'000;
    s.pairs = 1;
    s.hints = {"none", "right", "wrong"};
    s.cold = "file:" + ::testing::TempDir();
    const bench_result result = bench_m2t(s);
    const auto& rows = result.json["hints"];
    ASSERT_EQ(rows.size(), 3u * 9);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i]["window"], i % 9);
        EXPECT_EQ(rows[i]["throughput_ratio"].is_null(), i % 9 == 0) << rows[i];
        EXPECT_GT(rows[i]["used_bytes"].get<double>(), 0) << rows[i];
    }
    const auto used = [&](std::size_t hints, std::size_t window) {
        return rows[hints * 9 + window]["used_bytes"].get<double>();
    };
    constexpr std::size_t none = 0, right = 1, wrong = 2;
    // Of what all values take: how much of it hints have already sent out while values were loaded depends on the
    // machine's load, so only loading without hints is a measure.
    const double loaded = used(none, 0);
    for (const std::size_t hints : {none, right, wrong})
        EXPECT_LT(used(hints, 8), .7 * loaded) << rows[hints * 9 + 8];
    // Heard at once: when nothing is known of the others.
    EXPECT_LT(used(right, 4), .7 * used(none, 4));
    // Nothing comes back: what was cold at loading is still out. The margin is for tables and partly filled runs.
    EXPECT_LT(used(right, 8), used(right, 0) + .1 * loaded);
    EXPECT_EQ(result.figures.size(), 3u);
}

// Through sockets as without them: every reply is compared by the clients.
TEST(m2t, every_workload_runs_over_tcp) {
    m2t_settings s = small();
    s.layouts = {"malloc", "near", "near-meta+temperature"};
    s.tiers = {"dram", "model"};
    s.transports = {"tcp"};
    s.workloads = {"A", "B", "C", "D", "F"};
    s.per_bucket = {8};
    s.pairs = 1;
    s.connections = 7;
    s.server_threads = 2;
    const bench_result result = bench_m2t(s);
    std::size_t served = 0;
    for (const auto& cell : result.json["cells"]) {
        if (cell["tier"] == "model") {
            EXPECT_EQ(cell["transport"], "memory") << cell;
            continue;
        }
        EXPECT_EQ(cell["transport"], "tcp") << cell;
        EXPECT_GT(cell["cpu_ns_per_op"].get<double>(), 0) << cell;
        // What clients wait for, not the processor's time.
        EXPECT_DOUBLE_EQ(cell["throughput_ops"].get<double>() * cell["ns_per_op"].get<double>(),
                         1e9)
            << cell;
        ++served;
    }
    EXPECT_EQ(served, 15u);
    bool claimed = false;
    for (const auto& claim : result.json["claims"])
        if (claim["claim"] == "the same through the server, over TCP") {
            claimed = true;
            EXPECT_EQ(claim["verdict"], "not testable") << "lists of 8 are not the paper's";
        }
    EXPECT_TRUE(claimed);
}

class served_store {
  public:
    served_store()
        : db_(crestdb::store::open(
              {.index = "chained-hash-table", .protocol = "none", .expected_keys = 100})),
          server_(std::make_unique<crestdb::store_server>(*db_, crestdb::store_server_options{})),
          port_(server_->port()) {
        server_->start();
    }
    void put(std::uint64_t id, std::string_view value) {
        std::array<char, 24> key;
        workload::write_key(key, id);
        db_->put({key.data(), key.size()}, value);
    }
    table_client_settings clients(std::uint64_t records) const {
        return {.port = port_, .connections = 3, .records = records, .value = "value"};
    }
    crestdb::store& db() { return *db_; }
    void end() { server_.reset(); }

  private:
    std::unique_ptr<crestdb::store> db_;
    std::unique_ptr<crestdb::store_server> server_;
    unsigned port_;
};

TEST(table_client, asks_for_all_and_writes_what_it_says) {
    served_store served;
    for (std::uint64_t id = 0; id < 10; ++id) served.put(id, "value");
    using what = workload::operation;
    std::vector<table_request> requests;
    for (std::uint64_t id = 0; id < 10; ++id) requests.push_back({what::read, id});
    for (std::uint64_t id = 10; id < 30; ++id) requests.push_back({what::insert, id});
    for (std::uint64_t id = 10; id < 30; ++id) requests.push_back({what::read, id});
    for (std::uint64_t id = 0; id < 10; ++id) requests.push_back({what::read_modify_write, id});
    for (std::uint64_t id = 0; id < 10; ++id) requests.push_back({what::update, id});
    for (std::uint64_t id = 30; id < 35; ++id) requests.push_back({what::read_modify_write, id});
    table_client(served.clients(10)).ask(requests);
    EXPECT_EQ(served.db().size(), 35u) << "read, and written though they were absent";
    table_client(served.clients(10)).ask({});
}

TEST(table_client, tells_other_replies_than_it_expects) {
    served_store served;
    for (std::uint64_t id = 0; id < 10; ++id) served.put(id, id == 7 ? "other" : "value");
    const auto error_of = [&](std::vector<table_request> requests) -> std::string {
        try {
            table_client(served.clients(12)).ask(requests);
        } catch (const std::runtime_error& error) {
            return error.what();
        }
        return "";
    };
    using what = workload::operation;
    EXPECT_EQ(error_of({{what::read, 6}}), "");
    EXPECT_EQ(error_of({{what::read, 6}, {what::read, 7}}),
              "the server of the table: another reply than expected, for record 7");
    EXPECT_EQ(error_of({{what::read, 12}}), "") << "might be inserted by others";
    const std::string absent = error_of({{what::read, 11}});
    EXPECT_EQ(absent, "the server of the table: another reply than expected, for record 11");
    served.end();
    EXPECT_EQ(error_of({{what::read, 1}}), "the server of the table: a connection has ended");
}

TEST(m2t, refuses_what_it_does_not_have) {
    m2t_settings s = small();
    s.theta = .5;
    s.workloads = {"A"};
    EXPECT_THROW(bench_m2t(s), std::invalid_argument);
}

} // namespace
} // namespace obase::tools
