// SPDX-License-Identifier: MIT
//
// miss_ratio_curve: how much memory serves which share of the accesses, for units (objects or pages)
// that are in memory whole or not at all. And inflation, the measure of a layout.
//
//     auto objects = curve_of_hottest({{64, 900}, {64, 100}});
//     objects.bytes_for(.9); // 64
//
//                       bytes of the pages that serve the share h of the accesses
//     inflation at h = -----------------------------------------------------------
//                       bytes of the hottest objects that serve the same share
//
// 1 is the best that a layout can reach; a page-based backend cannot do better than the pages'
// curve, whatever it knows of the future of a stationary load.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace obase::tools {

struct cached_unit {
    double bytes = 0;    // > 0
    double accesses = 0; // any scale; 0: never accessed
};

class miss_ratio_curve {
  public:
    struct point {
        double bytes = 0;
        double hit_ratio = 0;
    };
    // Points ascending in both members; the curve goes from (0, 0) to the first of them, and is
    // straight between them.
    explicit miss_ratio_curve(std::vector<point> points) : points_(std::move(points)) {}

    // The least memory that serves the share; nothing if no size does. Shares in [0, 1].
    std::optional<double> bytes_for(double hit_ratio) const;
    // 1 - the miss ratio with that much memory.
    double hit_ratio_with(double bytes) const;
    const std::vector<point>& points() const noexcept { return points_; }

  private:
    std::vector<point> points_;
};

// The curve of the best static choice: units by accesses per byte, the most accessed first. Units
// without accesses do not count. O(n log n).
miss_ratio_curve curve_of_hottest(std::vector<cached_unit> units);

// Nothing if a curve does not reach the share, or no object is needed for it.
std::optional<double> inflation(const miss_ratio_curve& objects, const miss_ratio_curve& pages,
                                double hit_ratio);

} // namespace obase::tools
