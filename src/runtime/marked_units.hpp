// SPDX-License-Identifier: MIT
//
// What translation units with marked pointers have said of themselves.
#pragma once

namespace obase::runtime_internal {

// Any thread. True if there is such a unit, and its protocol, which is that of all of them, has this name.
bool has_marked_units(const char* protocol) noexcept;

} // namespace obase::runtime_internal
