// SPDX-License-Identifier: MIT
//
// places: what stands in the source at an address in the program's code.
//
// Read from the files of the program and its libraries: function and file from symbols and line tables (DWARF 4 and 5;
// obase-clang has clang write line tables), the marked field from the table that the passes and
// obase-rewrite leave in the section `.obase.sites`, which is not loaded. The table's lines, columns
// separated by tabs:
//
//     unit    SOURCE
//     field   NUMBER  NAME  TYPE  DECLARED-AT       numbers count within a unit
//     site    KIND    NUMBER  FILE  LINE  COLUMN    an access of that field; column 0: any
//     shares  SYMBOL                               a function on marked fields, or a variable with some, that other units see
//
// Without line tables, or where they are compressed, there is the function alone.
//
// Async-signal-safe but for dl_iterate_phdr's lock. Cost: a pass over the line tables of one file, so for reports only.
#pragma once

#include <cstddef>
#include <cstdint>

namespace obase::audit {

struct source_place {
    char function[160] = "";
    char file[256] = "";
    unsigned line = 0; // 0: not known
    unsigned column = 0;
    char field[160] = ""; // the marked field that is accessed there
    char type[128] = "";
    char declared[256] = ""; // file:line of the field
};

// `is_return`: the address is that behind a call, and the call is meant.
void find_source(const void* address, bool is_return, source_place& out) noexcept;

// A variable with static storage that has the address: its name, the offset in it and, if asked for, its size. False: none.
bool find_variable(const void* address, char* name, std::size_t room, std::size_t* offset,
                   std::size_t* bytes = nullptr) noexcept;

} // namespace obase::audit
