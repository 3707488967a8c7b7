// SPDX-License-Identifier: MIT
#include "audit/mark_counts.hpp"

#include "audit/places.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace obase::audit {

// Reads line tables once for each place.
std::size_t mark_counts::row_of(const void* made_by, const void* slot) noexcept {
    known_place* const end = places_ + places_used_;
    known_place* const known =
        std::find_if(places_, end, [=](const known_place& k) { return k.made_by == made_by; });
    if (known != end) return known->row < most_rows ? known->row : row_of_variable(slot);
    source_place at;
    find_source(made_by, true, at);
    char name[sizeof row::field] = "";
    if (at.field[0] != '\0')
        std::snprintf(name, sizeof name, "%s", at.field);
    else if (at.line != 0)
        std::snprintf(name, sizeof name, "of %.120s:%u", at.file, at.line);
    const std::size_t found =
        name[0] != '\0' ? row_named(name) : most_rows; // most_rows: by the slot
    if (places_used_ < most_places) places_[places_used_++] = {made_by, found};
    return found < most_rows ? found : row_of_variable(slot);
}

// Reads symbols once for each variable.
std::size_t mark_counts::row_of_variable(const void* slot) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(slot);
    if (address - variable_begin_ < variable_bytes_) return variable_row_;
    char variable[sizeof row::field];
    std::size_t offset = 0, bytes = 0;
    if (!find_variable(slot, variable, sizeof variable, &offset, &bytes))
        return row_named("of which the field is not known");
    variable_begin_ = address - offset;
    variable_bytes_ = bytes;
    return variable_row_ = row_named(variable);
}

std::size_t mark_counts::row_named(const char* name) noexcept {
    std::size_t i = 0;
    while (i < rows_used_ && std::strcmp(rows_[i].field, name) != 0) ++i;
    if (i == rows_used_ && i < most_rows) std::strcpy(rows_[rows_used_++].field, name);
    return std::min(i, most_rows - 1);
}

void mark_counts::add(const void* made_by, const void* slot, std::size_t bytes, bool moved,
                      bool cold) noexcept {
    row& r = rows_[row_of(made_by, slot)];
    ++r.objects;
    r.bytes += bytes;
    r.moved += moved;
    r.hot += moved && !cold;
    r.cold += cold;
}

} // namespace obase::audit
