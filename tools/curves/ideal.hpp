// SPDX-License-Identifier: MIT
//
// The least memory with which a load could have run: what `obase bench memory` holds the memory that
// was used against.
//
//     ideal      the bytes of the smallest set of objects such that the accesses to all others are the
//                share of the accesses that faulted, and the index
//     used/ideal what the process was charged for, over that
//
// The popularity of every object is known, so the ideal is exact: of the objects with the most
// accesses per byte as many as it takes, the last one in part. A process that faults more is allowed
// less.
//
//     ideal_object_bytes(curve_of_hottest({{1024, .7}, {1024, .2}, {1024, .1}}), .1); // 2048
#pragma once

#include "tools/curves/miss_ratio_curve.hpp"

#include <optional>

namespace obase::tools {

// `objects`: the curve of all of them; `fault_share`: of all accesses, in [0, 1]. Objects that are never
// accessed are not needed.
double ideal_object_bytes(const miss_ratio_curve& objects, double fault_share);

struct memory_use {
    double used = 0;          // bytes, of everything
    double index = 0;         // bytes of it that are the index, which both have
    double ideal_objects = 0; // bytes
};

// Nothing where no memory was needed.
std::optional<double> used_over_ideal(const memory_use& use);
// The same without the index on either side.
std::optional<double> objects_over_ideal(const memory_use& use);

} // namespace obase::tools
