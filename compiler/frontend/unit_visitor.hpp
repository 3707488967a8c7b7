// SPDX-License-Identifier: MIT
//
// Brings each node of the translation unit to the checks, once all of it is known: instances of
// templates instead of their patterns, and of library headers only what was instantiated, since
// that may be for a type of the program (std::vector moves its elements by bytes).
#pragma once

#include "checks.hpp"

namespace obase::frontend {

void check_unit(unit& in);

} // namespace obase::frontend
