// SPDX-License-Identifier: MIT
//
// The backends by name: what the option `backend` may say. The table is in backends.cpp; a new backend
// is a header beside it and a row there.
#pragma once

#include "backend/backend.hpp"
#include "options/choices.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace obase::backend {

using backend_maker = std::unique_ptr<backend> (*)(const messenger& say);

// Null with *why_not set: there is none of that name.
std::unique_ptr<backend> make_backend(std::string_view name, const messenger& say,
                                      std::string* why_not);

// The table. Tests add backends to it, before the first object is made.
choices<backend_maker>& backends() noexcept;

} // namespace obase::backend
