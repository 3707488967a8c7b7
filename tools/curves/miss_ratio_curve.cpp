// SPDX-License-Identifier: MIT
#include "tools/curves/miss_ratio_curve.hpp"

#include <algorithm>

namespace obase::tools {

std::optional<double> miss_ratio_curve::bytes_for(double hit_ratio) const {
    const auto at =
        std::lower_bound(points_.begin(), points_.end(), hit_ratio,
                         [](const point& p, double wanted) { return p.hit_ratio < wanted; });
    if (at == points_.end()) return std::nullopt;
    const point before = at == points_.begin() ? point{} : *(at - 1);
    if (at->hit_ratio <= before.hit_ratio) return at->bytes;
    return before.bytes + (at->bytes - before.bytes) * (hit_ratio - before.hit_ratio) /
                              (at->hit_ratio - before.hit_ratio);
}

double miss_ratio_curve::hit_ratio_with(double bytes) const {
    const auto at = std::upper_bound(points_.begin(), points_.end(), bytes,
                                     [](double has, const point& p) { return has < p.bytes; });
    const point before = at == points_.begin() ? point{} : *(at - 1);
    if (at == points_.end()) return before.hit_ratio;
    return before.hit_ratio +
           (at->hit_ratio - before.hit_ratio) * (bytes - before.bytes) / (at->bytes - before.bytes);
}

miss_ratio_curve curve_of_hottest(std::vector<cached_unit> units) {
    std::erase_if(units, [](const cached_unit& u) { return u.accesses <= 0; });
    std::sort(units.begin(), units.end(), [](const cached_unit& a, const cached_unit& b) {
        return a.accesses * b.bytes > b.accesses * a.bytes;
    });
    double accesses = 0;
    for (const cached_unit& u : units) accesses += u.accesses;
    std::vector<miss_ratio_curve::point> points;
    points.reserve(units.size());
    double bytes = 0, served = 0;
    for (const cached_unit& u : units) {
        bytes += u.bytes;
        served += u.accesses;
        points.push_back({bytes, served / accesses});
    }
    // The sums differ by rounding; all units together serve everything.
    if (!points.empty()) points.back().hit_ratio = 1;
    return miss_ratio_curve(std::move(points));
}

std::optional<double> inflation(const miss_ratio_curve& objects, const miss_ratio_curve& pages,
                                double hit_ratio) {
    const auto ideal = objects.bytes_for(hit_ratio);
    const auto needed = pages.bytes_for(hit_ratio);
    if (!ideal || !needed || *ideal <= 0) return std::nullopt;
    return *needed / *ideal;
}

} // namespace obase::tools
