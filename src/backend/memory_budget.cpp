// SPDX-License-Identifier: MIT
#include "backend/memory_budget.hpp"

#include "os/container.hpp"
#include "os/process.hpp"

#include <algorithm>

namespace obase::backend {

memory_use gather_memory_use(memory_limit::of kind) noexcept {
    memory_use use;
    if (kind == memory_limit::of::nothing) return use;
    use.process = os::resident_bytes();
    if (kind == memory_limit::of::bytes) return use;
    os::machine here;
    if (kind == memory_limit::of::percent && os::read_machine(&here)) use.machine = here.ram_bytes;
    const os::container_memory group = os::read_container_memory();
    use.group_charged = group.charged_bytes;
    use.group_limit = group.limit_bytes;
    return use;
}

memory_budget current_budget(std::string_view memory_option, std::uint64_t misplaced) noexcept {
    return current_budget(parse_memory_limit(memory_option).value_or(memory_limit()), misplaced);
}

memory_budget current_budget(const memory_limit& asked, std::uint64_t misplaced) noexcept {
    memory_use use = gather_memory_use(asked.kind);
    use.misplaced = misplaced;
    return budget_of(asked, use);
}

memory_budget budget_of(const memory_limit& asked, const memory_use& use) noexcept {
    memory_budget budget;
    const std::uint64_t own = use.process + use.misplaced;
    const auto share_of = [](double share, std::uint64_t whole) {
        // At least a byte: 0 says that there is no budget.
        return std::max(static_cast<std::uint64_t>(share * static_cast<double>(whole)),
                        std::uint64_t{1});
    };
    switch (asked.kind) {
    case memory_limit::of::nothing:
        break;
    case memory_limit::of::bytes:
        budget.allowed = asked.bytes;
        budget.used = own;
        budget.files_count = true;
        break;
    case memory_limit::of::percent:
        budget.allowed = share_of(asked.percent / 100, std::min(use.group_limit, use.machine));
        budget.used = own;
        budget.files_count = true;
        break;
    case memory_limit::of::group:
        if (use.group_limit == UINT64_MAX) break;
        budget.allowed = share_of(group_target, use.group_limit);
        budget.used = use.group_charged + use.misplaced;
        if (budget.used > own)
            budget.share = static_cast<double>(own) / static_cast<double>(budget.used);
        break;
    }
    return budget;
}

} // namespace obase::backend
