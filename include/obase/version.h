// SPDX-License-Identifier: MIT
//
// The C names of version.hpp: which library a program runs with, and how it was built. Static text.
//
//     printf("obase %s (%s)\n", obase_version(), obase_build());
#pragma once

#include <obase/export.hpp>

#ifdef __cplusplus
extern "C" {
#endif

OBASE_EXPORT const char* obase_version(void);
OBASE_EXPORT const char* obase_build(void);

#ifdef __cplusplus
}
#endif
