// SPDX-License-Identifier: MIT
//
// packed_record: a window_record in some hundred bytes instead of 3.7 KB. A history of a thousand windows is memory of
// the program that it tells of, and most of a record is zero.
//
//     std::string bytes = pack(record, reference);      // std::bad_alloc
//     window_record same = unpack(bytes, reference);
//
// The record's 8-byte words, each exclusive or the same word of the reference, any other record: static texts and what
// seldom changes are zero then. A byte says which of eight words are not; each of those is a byte for its length and
// the bytes from the lowest up to the highest that is not zero.
//
// Threads: functions of their arguments. Cost: a pass over the record, and an allocation.
#pragma once

#include <obase/statistics.hpp>

#include <string>
#include <string_view>

namespace obase::telemetry {

std::string pack(const window_record& record, const window_record& reference);
// Precondition: what pack() made, with the same reference.
window_record unpack(std::string_view bytes, const window_record& reference) noexcept;

} // namespace obase::telemetry
