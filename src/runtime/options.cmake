# SPDX-License-Identifier: MIT
#
# Options and the self-check. Included by CMakeLists.txt of this directory.
target_sources(obase PRIVATE options.cpp self_check.cpp why_not_freed.cpp)

if(OBASE_BUILD_TESTS)
    obase_add_test(options_test SOURCES options_test.cpp LIBS rapidcheck)
    target_compile_definitions(options_test PRIVATE
        OBASE_OPTIONS_DOCUMENT="${PROJECT_SOURCE_DIR}/docs/options.md")
    obase_add_test(self_check_test SOURCES self_check_test.cpp)
    obase_add_test(why_not_freed_test SOURCES why_not_freed_test.cpp)
    obase_add_fuzzer(options_fuzz SOURCES options_fuzz.cpp CORPUS options_corpus)
endif()
