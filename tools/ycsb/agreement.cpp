// SPDX-License-Identifier: MIT
#include "tools/ycsb/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace obase::tools {

using nlohmann::json;

bool agree(double a, double b, double slack) {
    return std::abs(a - b) <= std::max(slack, agreement * std::max(std::abs(a), std::abs(b)));
}

std::optional<bool> utilization_agrees(const layout_answers& layout) {
    if (!layout.seen || !layout.by_address) return std::nullopt;
    if (layout.exact) return agree(*layout.seen, *layout.by_address);
    return static_cast<double>(layout.seen_bytes) >=
           (1 - agreement) * static_cast<double>(layout.touched_bytes);
}

std::optional<bool> kernel_agrees(const layout_answers& layout) {
    if (!layout.by_kernel || !layout.by_address || !layout.exact || layout.written)
        return std::nullopt;
    return agree(*layout.by_kernel, *layout.by_address);
}

std::optional<bool> both(const std::optional<bool>& a, const std::optional<bool>& b) {
    if (!a) return b;
    if (!b) return a;
    return *a && *b;
}

std::string disagreement(const json& run) {
    const json& w = run["witness"];
    const auto mib = [](const json& bytes) { return bytes.get<double>() / 1048576; };
    const auto contradicted = [&](const char* what) {
        return w[what].is_boolean() && !w[what].get<bool>();
    };
    std::string why;
    if (contradicted("utilization_agrees"))
        why +=
            fmt::format(" page utilization {} / {} (start) and {} / {} (end);",
                        run["page_utilization"]["start"].dump(), w["page_utilization_start"].dump(),
                        run["page_utilization"]["end"].dump(), w["page_utilization"].dump());
    if (contradicted("kernel_agrees"))
        why += fmt::format(" page utilization by the kernel {} / {} (end);",
                           run["page_utilization"]["kernel"].dump(), w["page_utilization"].dump());
    if (contradicted("used_agrees"))
        why += fmt::format(" used memory {} / {} MiB (start) and {} / {} MiB (end);",
                           mib(run["used_bytes"]["start"]), mib(w["used_bytes_start"]),
                           mib(run["used_bytes"]["end"]), mib(w["used_bytes"]));
    for (const char* what : {"lost_writes", "stale_reads", "corrupt_values"})
        if (w[what].get<std::uint64_t>() != 0)
            why += fmt::format(" {} {};", w[what].get<std::uint64_t>(), what);
    if (why.empty()) return "";
    return fmt::format("{} {} {}: the witness disagrees:{}", run["index"].get<std::string>(),
                       run["workload"].get<std::string>(), run["protocol"].get<std::string>(), why);
}

} // namespace obase::tools
