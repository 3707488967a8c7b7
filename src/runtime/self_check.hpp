// SPDX-License-Identifier: MIT
//
// runtime::self_check: says in plain words what cannot work here, before anybody wonders.
//
// What it is: a pure function from options and facts about the machine to sentences. Facts come
// from gather_facts(), or from a test. Each sentence says what was asked for, what is missing, what
// will happen instead, and what to do.
//
// When not to use it: to refuse to start. Nothing here is fatal; every shortage is met where it
// occurs (no room means no move).
#pragma once

#include <obase/options.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace obase::runtime {

enum class huge_pages : std::uint8_t { unknown, never, on_advice, always };

// What the machine offers. The defaults describe one on which everything works; 0 = no limit where
// a limit is meant.
struct system_facts {
    bool membarrier = true;
    bool madvise_cold = true; // MADV_COLD and MADV_PAGEOUT, Linux 5.4
    std::uint64_t swap_free_bytes = ~std::uint64_t{0};
    bool swap_present = true;              // some swap area is on
    bool cgroup_swap_forbidden = false;    // memory.swap.max of this cgroup is 0
    int overcommit = 0;                    // vm.overcommit_memory
    std::uint64_t address_space_limit = 0; // RLIMIT_AS
    std::uint64_t memory_bytes = 0;        // physical, 0 = unknown
    std::uint64_t cgroup_memory_limit = 0;
    std::uint64_t map_count_limit = 0; // vm.max_map_count
    bool memory_locked = false;        // mlockall is in force
    huge_pages thp = huge_pages::on_advice;
    unsigned cpus = 2;
    // The directory of cold_backing; meaningful when one is named.
    bool cold_directory_exists = true;
    bool cold_directory_writable = true;
    bool cold_directory_unnamed_files = true; // O_TMPFILE works there
    bool cold_directory_in_memory = false;    // tmpfs, ramfs
    std::uint64_t cold_directory_free_bytes = ~std::uint64_t{0};
};

// One sentence per problem, most important first; empty = everything asked for can work.
std::vector<std::string> self_check(const options& settings, const system_facts& facts);

} // namespace obase::runtime
