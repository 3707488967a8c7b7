// SPDX-License-Identifier: MIT
//
// Ctrl-C ends a measurement early with what there is, marked as partial. The second one ends the
// program at once.
#pragma once

namespace obase::tools {

void watch_for_interrupt() noexcept;
bool interrupted() noexcept;

} // namespace obase::tools
