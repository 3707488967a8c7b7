// SPDX-License-Identifier: MIT
#include "tools/curves/ideal.hpp"

#include <algorithm>

namespace obase::tools {

double ideal_object_bytes(const miss_ratio_curve& objects, double fault_share) {
    const double served = 1 - std::clamp(fault_share, 0.0, 1.0);
    return objects.bytes_for(served).value_or(0);
}

std::optional<double> used_over_ideal(const memory_use& use) {
    const double ideal = use.ideal_objects + use.index;
    if (ideal <= 0) return std::nullopt;
    return use.used / ideal;
}

std::optional<double> objects_over_ideal(const memory_use& use) {
    if (use.ideal_objects <= 0) return std::nullopt;
    return std::max(0.0, use.used - use.index) / use.ideal_objects;
}

} // namespace obase::tools
