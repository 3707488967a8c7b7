// SPDX-License-Identifier: MIT
//
// The names of the variables that a program compiled with --handles reads (docs/handles.md, src/handles/settings.hpp).
// Here because both readers of the environment must know them: options, which leaves them alone, and the handles'
// own, which says what is none of them.
#pragma once

#include <string_view>

namespace obase::options_internal {

inline constexpr std::string_view handles_prefix = "OBASE_HANDLES";
inline constexpr std::string_view handles_variables[] = {
    "OBASE_HANDLES",      "OBASE_HANDLES_STRESS",   "OBASE_HANDLES_START",
    "OBASE_HANDLES_STOP", "OBASE_HANDLES_SHARE",    "OBASE_HANDLES_TICK_MS",
    "OBASE_HANDLES_USED", "OBASE_HANDLES_MAPPINGS", "OBASE_HANDLES_TRACK",
};

constexpr bool is_handles_variable(std::string_view name) noexcept {
    for (const std::string_view known : handles_variables)
        if (name == known) return true;
    return false;
}

} // namespace obase::options_internal
