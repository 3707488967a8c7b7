// SPDX-License-Identifier: MIT
#include "runtime/self_check.hpp"

#include "os/memory.hpp"
#include "os/platform.hpp"
#include "policy/policies.hpp"

#include <cerrno>
#include <system_error>
#include <thread>

namespace obase::runtime_internal {

namespace {

std::string mebibytes(std::uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

void check_settings(const options& settings, std::vector<std::string>& found) {
    for (const std::string& message : settings.out_of_range()) found.push_back(message);
    const bool hinting = settings.mode == run_mode::hint;
    if (hinting && !settings.hint_cold && !settings.hint_pageout && !settings.hint_hugepage) {
        found.push_back("mode is hint, but hint_cold, hint_pageout and hint_hugepage are all off: "
                        "this is mode move");
    }
    if (settings.controller == controller_kind::multiplicative && settings.controller_factor <= 1) {
        found.push_back("controller is multiplicative with controller_factor 1: C_t rises by one "
                        "window, as with additive");
    }
    if (settings.mode == run_mode::off && settings.debug_rearm) {
        found.push_back("debug_rearm is on, but mode is off: no guide is ever armed");
    }
}

void check_moving(const system_facts& facts, std::vector<std::string>& found) {
    if (!facts.membarrier) {
        found.push_back("the kernel offers no membarrier (PRIVATE_EXPEDITED): scopes use a slower "
                        "entry; if it stops working later, nothing moves");
    }
    if (facts.processors == 1) {
        found.push_back("one processor: the collector takes its share from the program's own "
                        "threads, and waits are longer; lower OBASE_COLLECTOR_CPU_SHARE if needed");
    }
}

void check_memory(const options& settings, const system_facts& facts,
                  std::vector<std::string>& found) {
    constexpr std::uint64_t little = std::uint64_t{1} << 30, few_maps = 1024;
    const std::uint64_t limit = facts.address_space_limit;
    if (settings.heap_reserve != 0 && settings.heap_reserve > limit / facts.heaps) {
        found.push_back("address space is limited to " + mebibytes(limit) +
                        " (ulimit -v), less than OBASE_HEAP_RESERVE for every heap: the heaps "
                        "will be smaller, and what does not fit does not move");
    } else if (limit < little) {
        found.push_back("address space is limited to " + mebibytes(limit) +
                        " (ulimit -v): the heaps will be small, and what does not fit does not "
                        "move");
    }
    if (facts.machine.overcommit_memory == 2) {
        found.push_back("vm.overcommit_memory is 2: memory is committed as heaps grow, and an "
                        "object stays where it is when the limit is reached");
    }
    if (facts.machine.max_map_count < few_maps) {
        found.push_back("vm.max_map_count is " + std::to_string(facts.machine.max_map_count) +
                        ": heaps may be unable to grow; raise it");
    }
}

// Why paging COLD out cannot free memory; nothing if it can.
void check_page_out(const options& settings, const system_facts& facts,
                    std::vector<std::string>& found) {
    if (settings.mode != run_mode::hint || !settings.hint_pageout) return;
    const std::string wish = "pageout asked for, ";
    if (!facts.page_hints) {
        found.push_back(wish + "but the kernel refuses MADV_PAGEOUT (it is older than 5.4, or "
                               "memory is locked by mlockall): nothing will be freed");
        return;
    }
    const bool in_file = !settings.cold_directory().empty();
    const bool needs_swap = !in_file || facts.cold_directory.in_memory;
    if (!needs_swap) return;
    const std::string remedy = "nothing will be freed; use OBASE_COLD_BACKING=file:DIR with DIR "
                               "on a disk";
    if (facts.machine.swap_total == 0) {
        found.push_back(wish + "no swap: " + remedy);
    } else if (facts.container.swap_bytes == 0) {
        found.push_back(wish + "but this cgroup may not swap: " + remedy);
    } else if (!os::can_page_out(facts.machine)) {
        found.push_back(wish + "swap is full: " + remedy);
    }
}

void check_cold_directory(const options& settings, const system_facts& facts,
                          std::vector<std::string>& found) {
    if (settings.cold_directory().empty()) return;
    const std::string directory(settings.cold_directory());
    const std::string consequence = ": COLD lies in anonymous memory instead";
    constexpr std::uint64_t little = std::uint64_t{64} << 20;
    if (!facts.cold_directory.exists) {
        found.push_back("OBASE_COLD_BACKING: there is no directory " + directory + consequence);
    } else if (facts.cold_directory.open_error == EOPNOTSUPP) {
        found.push_back("OBASE_COLD_BACKING: the file system of " + directory +
                        " has no unnamed files (O_TMPFILE)" + consequence);
    } else if (facts.cold_directory.open_error != 0) {
        found.push_back("OBASE_COLD_BACKING: cannot create a file in " + directory + " (" +
                        std::generic_category().message(facts.cold_directory.open_error) + ")" +
                        consequence);
    } else if (facts.cold_directory.in_memory) {
        found.push_back("OBASE_COLD_BACKING: " + directory +
                        " is on a file system that is itself memory (tmpfs): COLD there frees "
                        "memory only by swap");
    } else if (facts.cold_directory.free_bytes < little) {
        found.push_back("OBASE_COLD_BACKING: only " + mebibytes(facts.cold_directory.free_bytes) +
                        " free in " + directory + ": objects that do not fit are not moved");
    }
}

void check_other_hints(const options& settings, const system_facts& facts,
                       std::vector<std::string>& found) {
    if (settings.mode != run_mode::hint) return;
    if (settings.hint_cold && !facts.page_hints) {
        found.push_back(
            "hint_cold asked for, but the kernel refuses MADV_COLD (it is older than 5.4, "
            "or memory is locked by mlockall): cold memory is not marked");
    }
    if (settings.hint_hugepage && !facts.machine.transparent_huge_pages) {
        found.push_back("hint_hugepage asked for, but transparent huge pages are set to never or "
                        "missing: HOT stays in 4 KiB pages");
    }
}

} // namespace

os::machine system_facts::everything_works() noexcept {
    os::machine machine;
    machine.ram_bytes = std::uint64_t{16} << 30;
    machine.swap_total = machine.swap_free = machine.ram_bytes;
    machine.transparent_huge_pages = true;
    return machine;
}

system_facts gather_facts(const options& settings) {
    system_facts facts;
    os::read_machine(&facts.machine);
    facts.container = os::read_container_limits();
    const std::string directory(settings.cold_directory());
    if (!directory.empty()) facts.cold_directory = os::read_directory(directory.c_str());
    facts.address_space_limit = os::address_space_limit();
    facts.membarrier = os::native_platform::has_membarrier();
    facts.processors = std::thread::hardware_concurrency();
    std::string unknown; // then it is the usual one
    if (const auto policy = policy::make_policy(settings, ~0U, &unknown))
        facts.heaps = policy->tiers().count() + 1;
    // Tried on an unused page.
    if (void* page = os::reserve(os::page_size, os::page_size)) {
        facts.page_hints = os::advise(page, os::page_size, os::advice::cold) != EINVAL;
        os::release(page, os::page_size);
    }
    return facts;
}

std::vector<std::string> self_check(const options& settings, const system_facts& facts) {
    std::vector<std::string> found;
    check_settings(settings, found);
    if (settings.mode == run_mode::off) return found;
    const bool moving = settings.mode == run_mode::move || settings.mode == run_mode::hint;
    if (moving) check_moving(facts, found);
    check_page_out(settings, facts, found);
    check_cold_directory(settings, facts, found);
    check_other_hints(settings, facts, found);
    check_memory(settings, facts, found);
    return found;
}

} // namespace obase::runtime_internal
