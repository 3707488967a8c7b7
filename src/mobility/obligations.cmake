# SPDX-License-Identifier: MIT
#
# Tests of the arming protocol and of what it stands on: words, scopes, pins, deferred frees.
if(OBASE_BUILD_TESTS)
    obase_add_test(arming_obligations_test SOURCES arming_obligations_test.cpp
                   LIBS obase_testing LABELS ci long soak sanitize)
endif()
