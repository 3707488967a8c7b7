// SPDX-License-Identifier: MIT
#include "audit/mark_counts.hpp"

#include "audit/places.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace obase::audit {

// Reads line tables once for each place.
std::size_t mark_counts::row_of(const void* made_by) noexcept {
    known_place* const end = places_ + places_used_;
    known_place* const known =
        std::find_if(places_, end, [=](const known_place& k) { return k.made_by == made_by; });
    if (known != end) return known->row;
    source_place at;
    find_source(made_by, true, at);
    char name[sizeof row::field];
    if (at.field[0] != '\0')
        std::snprintf(name, sizeof name, "%s", at.field);
    else if (at.line != 0)
        std::snprintf(name, sizeof name, "of %.120s:%u", at.file, at.line);
    else
        std::snprintf(name, sizeof name, "of which the field is not known");
    std::size_t i = 0;
    while (i < rows_used_ && std::strcmp(rows_[i].field, name) != 0) ++i;
    if (i == rows_used_ && i < most_rows) std::strcpy(rows_[rows_used_++].field, name);
    i = std::min(i, most_rows - 1);
    if (places_used_ < most_places) places_[places_used_++] = {made_by, i};
    return i;
}

void mark_counts::add(const void* made_by, std::size_t bytes, bool moved, bool cold) noexcept {
    row& r = rows_[row_of(made_by)];
    ++r.objects;
    r.bytes += bytes;
    r.moved += moved;
    r.hot += moved && !cold;
    r.cold += cold;
}

} // namespace obase::audit
