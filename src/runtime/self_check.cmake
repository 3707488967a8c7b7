# SPDX-License-Identifier: MIT
#
# The self-check. Included by CMakeLists.txt of this directory.
target_sources(obase PRIVATE self_check.cpp why_not_freed.cpp)

if(OBASE_BUILD_TESTS)
    obase_add_test(self_check_test SOURCES self_check_test.cpp)
    obase_add_test(why_not_freed_test SOURCES why_not_freed_test.cpp)
endif()
