// SPDX-License-Identifier: MIT
#include "tools/ycsb/object_map.hpp"

#include <bit>

namespace obase::tools {

std::vector<heat_region> heat_map_of(std::span<const placed_object> sorted, std::size_t cells,
                                     std::uint64_t gap_bytes,
                                     const std::function<std::string(std::uintptr_t)>& name_of) {
    constexpr std::uint64_t page = 4096;
    std::vector<heat_region> regions;
    std::uint64_t total = 0;
    std::uintptr_t end = 0;
    std::uintptr_t named_until = 0; // names are asked for once per 64 KiB
    std::string name;
    for (const placed_object& object : sorted) {
        bool fresh = regions.empty() || object.address > end + gap_bytes;
        if (fresh || object.address >= named_until) {
            name = name_of(object.address);
            named_until = (object.address | 0xffff) + 1;
            fresh = fresh || name != regions.back().name;
        }
        if (fresh) regions.push_back({name, object.address / page * page, 0, 0, {}});
        end = std::max<std::uintptr_t>(fresh ? 0 : end, object.address + object.bytes);
        heat_region& region = regions.back();
        const std::uint64_t bytes = (end - region.begin + page - 1) / page * page;
        total += bytes - region.bytes;
        region.bytes = bytes;
    }
    const std::uint64_t per_cell =
        std::bit_ceil(std::max<std::uint64_t>(page, total / std::max<std::size_t>(cells, 1)));
    std::size_t at = 0;
    for (heat_region& region : regions) {
        region.bytes_per_cell = per_cell;
        region.cells.assign((region.bytes + per_cell - 1) / per_cell, 0);
        for (; at < sorted.size() && sorted[at].address < region.begin + region.bytes; ++at) {
            const placed_object& object = sorted[at];
            if (!object.touched) continue;
            // An object may span cells.
            for (std::uint64_t from = object.address - region.begin, left = object.bytes;
                 left > 0;) {
                const std::uint64_t cell = from / per_cell;
                const std::uint64_t here = std::min(left, (cell + 1) * per_cell - from);
                if (cell < region.cells.size()) region.cells[cell] += static_cast<double>(here);
                from += here;
                left -= here;
            }
        }
        for (std::size_t i = 0; i < region.cells.size(); ++i) {
            const std::uint64_t size = std::min(per_cell, region.bytes - i * per_cell);
            region.cells[i] = std::min(1.0, region.cells[i] / static_cast<double>(size));
        }
    }
    return regions;
}

} // namespace obase::tools
