// SPDX-License-Identifier: MIT
//
// What the command lines of the measuring commands have in common.
#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <system_error>

namespace obase::tools {

// CLI11 reads -5 as an unsigned number, a large one.
inline std::string not_negative(const std::string& text) {
    return text.starts_with('-') ? "'" + text + "' is negative" : std::string();
}

// CLI11 takes nan for a positive number.
inline std::string above_zero(const std::string& text) {
    double value = 0;
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    return error == std::errc{} && stopped == end && std::isfinite(value) && value > 0
               ? std::string()
               : "'" + text + "' is not a number above 0";
}

// True if anything but the options of all benchmarks was given.
inline bool any_given(const CLI::App& command) {
    for (const CLI::Option* option : command.get_options())
        if (const std::string name = option->get_name();
            option->count() != 0 && name != "--json" && name != "--quick" && name != "--pairs")
            return true;
    return false;
}

// How often a command measures that does it once, unless --pairs was given.
inline std::size_t rounds_of(const CLI::App& command, std::size_t pairs) {
    const CLI::Option* given = command.get_option_no_throw("--pairs");
    return given != nullptr && given->count() != 0 ? pairs : 1;
}

} // namespace obase::tools
