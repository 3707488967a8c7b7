// SPDX-License-Identifier: MIT
//
// Sorts entries: highway's vqsort orders them as 128-bit integers, which are unique, so the order is
// stable although vqsort is not. Where prefixes are equal and keys longer, the records with the same
// prefix are ordered by the ten bytes behind what all of them share, and so on; small groups by
// comparing keys.
#pragma once

#include "wiscsort/order/keys.hpp"

#include <cstdint>
#include <span>

namespace wiscsort::order {

// One thread; no memory beyond a fixed stack. The entries keep their prefixes.
void sort_entries(std::span<entry> entries, const entry_less& less);

// How many entries were ordered by more than their prefixes, since the process began.
std::uint64_t ties_resolved();

} // namespace wiscsort::order
