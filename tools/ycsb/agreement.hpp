// SPDX-License-Identifier: MIT
//
// Compares what obase says of itself with what its witness found. Three answers: true and false,
// and nothing where the two cannot be compared; nothing is never taken for true without saying so.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace obase::tools {

// How far apart two answers to one question may be, of the larger one.
inline constexpr double agreement = 0.02;

// True if a and b differ by at most `agreement` of the larger one, or by at most `slack`.
bool agree(double a, double b, double slack = 0);

// One measurement of a layout by all who made it.
struct layout_answers {
    std::optional<double> seen;       // page utilization by the collector; nothing: none is at work
    std::optional<double> by_address; // by the traffic's log and the addresses
    std::optional<double> by_kernel;  // by the accessed bits of pages
    std::uint64_t seen_bytes = 0;     // of objects that the collector saw touched
    std::uint64_t touched_bytes = 0;  // of those in the log
    bool exact = false;               // nothing was touched that the traffic does not know of
    bool written = false; // objects were made and freed, on pages that only the kernel knows of
};

// The collector's page utilization is that of the addresses. Where an index may have touched more
// than the log knows of (`exact` is false), the collector saw at least what the log has.
std::optional<bool> utilization_agrees(const layout_answers& layout);
// The kernel's page utilization is that of the addresses; for loads that only read.
std::optional<bool> kernel_agrees(const layout_answers& layout);

// Both have to hold where both were compared.
std::optional<bool> both(const std::optional<bool>& a, const std::optional<bool>& b);
inline nlohmann::json flag_or_null(const std::optional<bool>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json(nullptr);
}

// What the witness of a run (the JSON of obase bench ycsb) contradicts, in a sentence; "" if it
// agrees.
std::string disagreement(const nlohmann::json& run);

} // namespace obase::tools
