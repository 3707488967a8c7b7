// SPDX-License-Identifier: MIT
//
// Says in one sentence why an older C++ does not do. Every public C++ header begins with it; obase.h,
// for C, can be used from any C++.
#pragma once

#if __cplusplus < 202002L
// clang-format off
#error "obase's C++ headers need C++20 (concepts, constinit): compile with -std=c++20 or newer, or use <obase/obase.h>"
// clang-format on
// Ends the compilation here, before a page of errors that say less.
#include <compile-with-std=c++20>
#endif
