// SPDX-License-Identifier: MIT
//
// How public headers throw: by functions of the library, so that a program compiled with
// -fno-exceptions can include them. There an exception ends the program, as no frame catches it.
//
//     if (memory == nullptr) obase::errors::out_of_memory();
#pragma once

#include <obase/language.hpp>

#include <obase/export.hpp>

namespace obase::errors {

// Throws std::bad_alloc.
[[noreturn]] OBASE_EXPORT void out_of_memory();
// Throws std::length_error(what).
[[noreturn]] OBASE_EXPORT void too_long(const char* what);

} // namespace obase::errors
