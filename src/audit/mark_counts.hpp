// SPDX-License-Identifier: MIT
//
// mark_counts: what the exit statistics say of each marked field: its objects, their bytes, and where they are by now.
//
//     obase: mark node::next: 9824 objects, 628736 bytes; 9700 have moved, 1201 hot, 8499 cold
//
// Known while OBASE_SHOW_STATS is on: a slot's field is found by the store that made it one (slot_places.hpp), and
// goes along when the memory around it moves.
//
// Threads: add() one, at exit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace obase::audit {

class mark_counts {
  public:
    struct row {
        char field[160] = "";
        std::uint64_t objects = 0, bytes = 0, moved = 0, hot = 0, cold = 0;
    };
    // An object that `slot` holds, which became one at `made_by` (null: not known). What stores into a marked variable, or
    // into an array that is one, names no field: then the variable is the name.
    void add(const void* made_by, const void* slot, std::size_t bytes, bool moved,
             bool cold) noexcept;

    // use(row) for each field.
    template <class Use>
    void for_each(Use&& use) const {
        for (std::size_t i = 0; i < rows_used_; ++i) use(rows_[i]);
    }

  private:
    static constexpr std::size_t most_rows = 64; // further ones count as the last
    static constexpr std::size_t most_places = 512;

    std::size_t row_of(const void* made_by, const void* slot) noexcept;
    std::size_t row_of_variable(const void* slot) noexcept;
    std::size_t row_named(const char* name) noexcept;

    row rows_[most_rows];
    std::size_t rows_used_ = 0;
    struct known_place {
        const void* made_by;
        std::size_t row;
    };
    known_place places_[most_places];
    std::size_t places_used_ = 0;
    // The variable that was found last, since slots come in the order of addresses.
    std::uintptr_t variable_begin_ = 0;
    std::size_t variable_bytes_ = 0;
    std::size_t variable_row_ = 0;
};

} // namespace obase::audit
