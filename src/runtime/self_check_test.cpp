// SPDX-License-Identifier: MIT
//
// One machine per sentence: each shortage is named, with what follows from it; where everything
// that was asked for can work, nothing is said.
#include "policy/policies.hpp"
#include "runtime/self_check.hpp"
#include "testing/eight_tiers.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

using namespace obase;
using namespace obase::runtime_internal;

namespace {

options hinting() {
    options settings;
    settings.mode = run_mode::hint;
    return settings;
}

// The one sentence that is said; fails if there are more or none.
std::string only(const options& settings, const system_facts& facts) {
    const std::vector<std::string> found = self_check(settings, facts);
    EXPECT_EQ(found.size(), 1u) << (found.empty() ? "nothing said" : found.back());
    return found.empty() ? "" : found.front();
}

bool holds(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST(self_check, is_silent_where_everything_works) {
    options settings = hinting();
    settings.hint_hugepage = true;
    settings.cold_backing = "file:/mnt/nvme";
    EXPECT_TRUE(self_check(settings, {}).empty());
}

TEST(self_check, names_missing_swap_and_the_remedy) {
    system_facts facts;
    facts.machine.swap_total = facts.machine.swap_free = 0;
    EXPECT_EQ(only(hinting(), facts), "pageout asked for, no swap: nothing will be freed; use "
                                      "OBASE_COLD_BACKING=file:DIR with DIR on a disk");
    options without = hinting();
    without.hint_pageout = false;
    EXPECT_TRUE(self_check(without, facts).empty());
    options in_file = hinting();
    in_file.cold_backing = "file:/mnt/nvme";
    EXPECT_TRUE(self_check(in_file, facts).empty());
    EXPECT_TRUE(self_check(options(), facts).empty()); // mode move gives no hints
}

TEST(self_check, names_full_swap_and_forbidden_swap) {
    system_facts facts;
    facts.machine.swap_free = 0;
    EXPECT_TRUE(holds(only(hinting(), facts), "swap is full"));
    facts = {};
    facts.container.swap_bytes = 0;
    EXPECT_TRUE(holds(only(hinting(), facts), "this cgroup may not swap"));
}

TEST(self_check, knows_that_a_file_in_tmpfs_is_memory) {
    system_facts facts;
    facts.cold_directory.in_memory = true;
    options settings = hinting();
    settings.cold_backing = "file:/dev/shm";
    EXPECT_TRUE(holds(only(settings, facts), "itself memory"));
    facts.machine.swap_total = 0;
    EXPECT_EQ(self_check(settings, facts).size(), 2u);
}

TEST(self_check, names_what_is_wrong_with_the_directory) {
    options settings;
    settings.cold_backing = "file:/mnt/nvme";
    system_facts facts;
    facts.cold_directory = {false, 0, false, 0};
    EXPECT_TRUE(holds(only(settings, facts), "there is no directory /mnt/nvme"));
    facts.cold_directory = {true, EACCES, false, 1 << 30};
    EXPECT_TRUE(holds(only(settings, facts), "cannot create a file in /mnt/nvme (Permission"));
    facts.cold_directory = {true, EOPNOTSUPP, false, 1 << 30};
    EXPECT_TRUE(holds(only(settings, facts), "O_TMPFILE"));
    facts.cold_directory = {true, 0, false, 5 << 20};
    EXPECT_TRUE(holds(only(settings, facts), "only 5 MiB free"));
}

TEST(self_check, names_missing_kernel_features) {
    system_facts facts;
    facts.page_hints = false;
    EXPECT_EQ(self_check(hinting(), facts).size(), 2u); // MADV_PAGEOUT and MADV_COLD
    facts = {};
    facts.machine.transparent_huge_pages = false;
    options settings = hinting();
    EXPECT_TRUE(self_check(settings, facts).empty());
    settings.hint_hugepage = true;
    EXPECT_TRUE(holds(only(settings, facts), "transparent huge pages"));
    facts = {};
    facts.membarrier = false;
    EXPECT_TRUE(holds(only(options(), facts), "membarrier"));
    settings = options();
    settings.mode = run_mode::observe;
    EXPECT_TRUE(self_check(settings, facts).empty());
}

TEST(self_check, names_shortages_of_memory) {
    system_facts facts;
    facts.machine.overcommit_memory = 2;
    EXPECT_TRUE(holds(only(options(), facts), "vm.overcommit_memory is 2"));
    facts = {};
    facts.machine.max_map_count = 100;
    EXPECT_TRUE(holds(only(options(), facts), "vm.max_map_count is 100"));
    facts = {};
    facts.address_space_limit = 512 << 20;
    EXPECT_TRUE(holds(only(options(), facts), "512 MiB"));
    options settings;
    settings.heap_reserve = std::uint64_t{64} << 30;
    facts.address_space_limit = std::uint64_t{100} << 30;
    EXPECT_TRUE(holds(only(settings, facts), "OBASE_HEAP_RESERVE"));
    settings.heap_reserve = std::uint64_t{20} << 30;
    EXPECT_TRUE(self_check(settings, facts).empty());
    facts.heaps = 9;
    EXPECT_TRUE(holds(only(settings, facts), "OBASE_HEAP_RESERVE"));
    facts = {};
    facts.processors = 1;
    EXPECT_TRUE(holds(only(options(), facts), "one processor"));
}

TEST(self_check, names_contradictory_options) {
    options settings = hinting();
    settings.hint_cold = settings.hint_pageout = false;
    EXPECT_TRUE(holds(only(settings, {}), "this is mode move"));
    settings = options();
    settings.controller = controller_kind::multiplicative;
    settings.controller_factor = 1;
    EXPECT_TRUE(holds(only(settings, {}), "controller_factor 1"));
    settings = options();
    settings.mode = run_mode::off;
    settings.debug_rearm = true;
    EXPECT_TRUE(holds(only(settings, {}), "debug_rearm"));
    settings = options();
    settings.window_seconds = -1;
    EXPECT_TRUE(holds(only(settings, {}), "window_seconds: '-1' is not a number"));
}

TEST(self_check, says_nothing_about_an_unused_machine) {
    options settings;
    settings.mode = run_mode::off;
    system_facts facts;
    facts.membarrier = false;
    facts.machine.overcommit_memory = 2;
    EXPECT_TRUE(self_check(settings, facts).empty());
}

TEST(gather_facts, reads_this_machine) {
    options settings;
    settings.cold_backing = "file:/nonexistent/obase";
    const system_facts facts = gather_facts(settings);
    EXPECT_GT(facts.machine.ram_bytes, 0u);
    EXPECT_GE(facts.processors, 1u);
    EXPECT_FALSE(facts.cold_directory.exists);
    EXPECT_GT(facts.container.memory_bytes, 0u);
    settings.cold_backing = "file:/proc";
    const os::directory_state proc = gather_facts(settings).cold_directory;
    EXPECT_TRUE(proc.exists);
    EXPECT_NE(proc.open_error, 0);
    settings.cold_backing = "file:/dev/shm";
    const os::directory_state shm = gather_facts(settings).cold_directory;
    if (shm.exists) {
        EXPECT_TRUE(shm.in_memory);
    }
}

TEST(gather_facts, asks_the_policy_how_many_heaps_it_needs) {
    ASSERT_TRUE(policy::policies().add("eight", obase::testing::eight_tiers::make));
    options settings;
    EXPECT_EQ(gather_facts(settings).heaps, 4u);
    settings.policy = "eight";
    EXPECT_EQ(gather_facts(settings).heaps, 9u);
    settings.policy = "none that there is";
    EXPECT_EQ(gather_facts(settings).heaps, 4u);
}

} // namespace
