// SPDX-License-Identifier: MIT
//
// Turns one translation unit that the front end has checked into changes of its files
// (include/obase/marked_access.h has before and after). What it cannot turn it refuses: nothing is
// left as it is that would go around a slot, and what slips through does not compile, because a slot
// is no pointer any more.
#pragma once

#include "manner.hpp"
#include "places.hpp"

#include "compiler/frontend/checks.hpp"

namespace obase::rewrite {

void rewrite_unit(frontend::unit& in, places& where, const manner& how);

} // namespace obase::rewrite
