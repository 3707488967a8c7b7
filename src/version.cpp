// SPDX-License-Identifier: MIT
//
// The build's own description; the OBASE_* macros come from src/CMakeLists.txt.
#include <obase/version.h>
#include <obase/version.hpp>

#if defined(__clang__)
#define OBASE_COMPILER "clang++ " __clang_version__
#else
#define OBASE_COMPILER "g++ " __VERSION__
#endif

#if defined(OBASE_DEBUG_CHECKS)
#define OBASE_CHECKS "scope checks"
#else
#define OBASE_CHECKS "no checks"
#endif

namespace obase {

const char* version() noexcept { return OBASE_VERSION; }

const char* build() noexcept {
    constexpr bool sanitized = sizeof(OBASE_SANITIZERS) > 1;
    return sanitized ? OBASE_COMPILER ", " OBASE_BUILD_TYPE ", " OBASE_CHECKS
                                      ", sanitizer " OBASE_SANITIZERS
                     : OBASE_COMPILER ", " OBASE_BUILD_TYPE ", " OBASE_CHECKS ", no sanitizer";
}

} // namespace obase

const char* obase_version(void) { return obase::version(); }
const char* obase_build(void) { return obase::build(); }
