// SPDX-License-Identifier: MIT
//
// A sort's report as JSON: what --json writes; bench's cells have the same fields.
#pragma once

#include "wiscsort/wiscsort.hpp"

#include <nlohmann/json_fwd.hpp>

namespace wiscsort {

nlohmann::json to_json(const sort_report& report);

} // namespace wiscsort
