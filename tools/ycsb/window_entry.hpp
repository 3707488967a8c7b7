// SPDX-License-Identifier: MIT
//
// What a result says of one window: throughput, memory, and what the collector saw and did.
#pragma once

#include "tools/ycsb/process_memory.hpp"

#include <obase/statistics.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>

namespace obase::tools {

// Of the last window.
std::uint64_t touched_bytes(const statistics& s);
double page_utilization(const statistics& s);
// So far.
std::uint64_t moves(const statistics& s);

// Of a window that ended `now_s` seconds after the traffic began, with what `before` and `now` say
// of its beginning and end; both null for plain pointers, and what they would say is null then.
nlohmann::json window_entry(double now_s, const memory_sample& memory, const statistics* before,
                            const statistics* now, double seconds, std::uint64_t operations);

} // namespace obase::tools
