// SPDX-License-Identifier: MIT
//
// Which library a program runs with. The number is the one of the CMake package and of pkg-config;
// build() is what a benchmark result or a bug report needs besides. Both return static text.
//
// It is known at run time only; find_package(obase 0.1) selects a version at configure time.
//
//     std::printf("obase %s (%s)\n", obase::version(), obase::build());
#pragma once

#include <obase/language.hpp>

#include <obase/export.hpp>

namespace obase {

// "0.1.0"
OBASE_EXPORT const char* version() noexcept;

// Compiler and how it was used, for example "g++ 12.2.0, relwithdebinfo, no checks, no sanitizer".
OBASE_EXPORT const char* build() noexcept;

} // namespace obase
