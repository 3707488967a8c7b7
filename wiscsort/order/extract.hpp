// SPDX-License-Identifier: MIT
//
// From records to entries: the strided reads of keys that build the paper's IndexMap.
#pragma once

#include "wiscsort/device/device.hpp"
#include "wiscsort/device/memory.hpp"
#include "wiscsort/order/keys.hpp"

#include <cstdint>

namespace wiscsort::order {

// Bytes in memory that hold the positions [begin, end). `whole`: the file ends there, so a record that
// does not end before is torn, or a last line without terminator.
struct window {
    const char* memory = nullptr;
    std::uint64_t begin = 0, end = 0;
    bool whole = true;
};

// Appends the entries of the records that begin in [from, to), until `out` is full. A record must begin
// at `from`. Returns where the first record begins that was not taken: `to` or behind it if all were;
// where a record is not complete in a window that is not whole, its beginning.
// Throws shorter_prefix; error if the last record is torn (`input` names it).
// `keys_only`: tells `reads` the key's bytes alone, as a strided read of a mapping moves them.
std::uint64_t extract(const device::input_set& input, const window& window, std::uint64_t from,
                      std::uint64_t to, const key_order& order, device::entry_array& out,
                      device::stream* reads, bool keys_only);

// The first position from `at` on, below `end`, where a line begins: `at` itself if the byte before it
// is a terminator. Precondition: the byte before `at` is in memory. Returns `end` if there is none.
std::uint64_t next_line(const char* memory, std::uint64_t at, std::uint64_t end, char terminator);

} // namespace wiscsort::order
