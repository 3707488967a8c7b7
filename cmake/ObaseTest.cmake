# SPDX-License-Identifier: MIT
#
# Functions that a directory's CMakeLists.txt uses to declare what is checked. Without
# OBASE_BUILD_TESTS they do nothing; whatever else touches their targets needs an if() of its own.
#
#   obase_add_test(<name> SOURCES <file>... [LIBS <target>...] [LABELS <label>...]
#                  [ENV <KEY=VALUE>...] [ARGS <argument>...] [REARM] [SERIAL] [NO_MAIN]
#                  [NO_LIBRARY] [LOCKS <name>...] [COST <seconds>])
#       A GoogleTest executable, linked with obase (LIBS rapidcheck for properties). LABELS (default: ci):
#         ci, long, soak   the tier. One ctest entry per tier, with OBASE_TEST_TIER=<tier> in its
#                          environment: <name> for ci, <name>.long, <name>.soak. `make test` runs ci.
#                          What `make check` runs besides has the label `check`, and is added
#                          with add_test (scripts/, models/, compiler/fuzz).
#         any other        a mark on every entry. `sanitize` puts the test into the subset that
#                          `make check` builds and runs with the thread and address sanitizers,
#                          `sanitize_address` into that of the second alone. In what one thread does,
#                          or the fibers of the deterministic scheduler, a switch of which is a
#                          synchronization to it, ThreadSanitizer has no race to see.
#       REARM: each entry a second time, <entry>.rearm, with OBASE_DEBUG_REARM=1.
#       SERIAL: no other test at the same time. NO_MAIN: the sources define main().
#       NO_LIBRARY: linked with src/os only. For layers that are headers: changing one then rebuilds
#         its tests and not the library, which `make mutants` does a hundred times. Sanitized, where
#         there are no mutants, it is linked as the others are: nothing is compiled twice, and the
#         precompiled headers are used.
#       LOCKS: tests that name the same one do not run at the same time.
#       COST: what begins first in the ci tier, so that it does not run alone in the end: a clean clone knows no
#         times. For what takes long, also sanitized.
#
#   obase_add_fuzzer(<name> SOURCES <file>... CORPUS <directory> [LIBS <target>...])
#       The sources define LLVMFuzzerTestOneInput. With OBASE_FUZZ (preset `fuzz`) a libFuzzer
#       program; otherwise the same sources with fuzz_replay_main.cpp, and a test that replays the
#       committed corpus and a fixed number of its mutations.
#
#   obase_add_benchmark(<name> SOURCES <file>... [LIBS <target>...])
#       The sources define main() and understand --smoke: a size that ends within a second or so.
#       ctest runs that, as <name>.smoke, so that a benchmark does not rot.

# A test's own code is compiled often and measured never; the library it is linked with is -O3. At
# -O1 g++ takes the value of an empty std::optional for an uninitialized variable.
set(obase_test_options "$<$<CONFIG:RelWithDebInfo>:-O1>"
    "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")

if(OBASE_BUILD_TESTS)
    find_package(GTest REQUIRED)
    find_package(rapidcheck REQUIRED)
    find_package(benchmark REQUIRED)
    find_package(nlohmann_json 3 REQUIRED)
    find_package(Python3 REQUIRED COMPONENTS Interpreter)
    # `make check` builds only these with the sanitizers.
    add_custom_target(obase_sanitize_tests)
    # The headers that every test reads, compiled once. An executable, because what is compiled for
    # one (-fPIE) cannot use what was compiled for a library.
    add_executable(obase_test_headers "${CMAKE_CURRENT_LIST_DIR}/test_headers.cpp")
    target_precompile_headers(obase_test_headers PRIVATE
        "${CMAKE_CURRENT_LIST_DIR}/test_headers.hpp")
    target_compile_options(obase_test_headers PRIVATE ${obase_test_options})
    target_link_libraries(obase_test_headers PRIVATE
        obase GTest::gtest rapidcheck rapidcheck_gtest)
endif()

# obase_add_test_library(<name> SOURCES <file>... [LIBS <target>...]): some sources of the library, for
# tests that are NO_LIBRARY. Sanitized, all of the library.
function(obase_add_test_library name)
    cmake_parse_arguments(PARSE_ARGV 1 library "" "" "SOURCES;LIBS")
    if(OBASE_SANITIZE)
        add_library(${name} INTERFACE)
        target_link_libraries(${name} INTERFACE obase)
        return()
    endif()
    add_library(${name} STATIC EXCLUDE_FROM_ALL ${library_SOURCES})
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
    target_link_libraries(${name} PUBLIC ${library_LIBS})
endfunction()

set(obase_tiers ci long soak)
if(OBASE_BUILD_TESTS AND NOT OBASE_FUZZ)
    add_library(obase_fuzz_replay_main OBJECT "${CMAKE_CURRENT_LIST_DIR}/fuzz_replay_main.cpp")
endif()

function(obase_set_test_executable name)
    target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(${name} PRIVATE ${ARGN} obase)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
endfunction()

function(obase_add_test name)
    if(NOT OBASE_BUILD_TESTS)
        return()
    endif()
    cmake_parse_arguments(PARSE_ARGV 1 test "REARM;SERIAL;NO_MAIN;NO_LIBRARY" "COST"
                          "SOURCES;LIBS;LABELS;ENV;ARGS;LOCKS")
    if(NOT test_SOURCES OR test_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "obase_add_test(${name}): SOURCES missing, or not understood: "
                            "'${test_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT test_LABELS)
        set(test_LABELS ci)
    endif()
    set(main GTest::gtest_main)
    if(test_NO_MAIN)
        set(main GTest::gtest)
    endif()

    add_executable(${name} ${test_SOURCES})
    if(test_NO_LIBRARY AND NOT OBASE_SANITIZE)
        target_include_directories(${name} PRIVATE
            "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
        target_link_libraries(${name} PRIVATE ${test_LIBS} ${main} obase_os)
        set_target_properties(${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
    else()
        obase_set_test_executable(${name} ${test_LIBS} ${main})
        if(NOT "${test_SOURCES}" MATCHES "[.]c(;|$)")
            target_precompile_headers(${name} REUSE_FROM obase_test_headers)
        endif()
    endif()
    target_compile_options(${name} PRIVATE ${obase_test_options})

    set(marks ${test_LABELS})
    list(REMOVE_ITEM marks ${obase_tiers})
    if("sanitize_address" IN_LIST marks AND NOT OBASE_SANITIZE MATCHES "thread")
        list(APPEND marks sanitize)
    endif()
    if("sanitize" IN_LIST marks)
        add_dependencies(obase_sanitize_tests ${name})
    endif()
    set(tiered FALSE)
    foreach(tier IN LISTS obase_tiers)
        if(NOT tier IN_LIST test_LABELS)
            continue()
        endif()
        set(tiered TRUE)
        set(entries ${name})
        if(NOT tier STREQUAL "ci")
            set(entries ${name}.${tier})
        endif()
        if(test_REARM)
            list(APPEND entries ${entries}.rearm)
        endif()
        foreach(entry IN LISTS entries)
            set(environment OBASE_TEST_TIER=${tier} ${test_ENV})
            if(entry MATCHES "[.]rearm$")
                list(APPEND environment OBASE_DEBUG_REARM=1)
            endif()
            add_test(NAME ${entry} COMMAND ${name} ${test_ARGS})
            set_tests_properties(${entry} PROPERTIES
                LABELS "${tier};${marks}" ENVIRONMENT "${environment}"
                RUN_SERIAL "${test_SERIAL}" RESOURCE_LOCK "${test_LOCKS}")
            if(tier STREQUAL "ci" AND test_COST)
                set_tests_properties(${entry} PROPERTIES COST ${test_COST})
            endif()
            if(NOT tier STREQUAL "ci")
                # ctest's default would end a long run that is merely long.
                set_tests_properties(${entry} PROPERTIES TIMEOUT 604800)
            endif()
        endforeach()
    endforeach()
    if(NOT tiered)
        message(FATAL_ERROR "obase_add_test(${name}): LABELS names no tier (${obase_tiers})")
    endif()
endfunction()

function(obase_add_fuzzer name)
    if(NOT OBASE_BUILD_TESTS)
        return()
    endif()
    cmake_parse_arguments(PARSE_ARGV 1 fuzz "" "CORPUS;LONG" "SOURCES;LIBS")
    if(NOT fuzz_SOURCES OR NOT fuzz_CORPUS OR fuzz_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "obase_add_fuzzer(${name}): SOURCES or CORPUS missing, or not "
                            "understood: '${fuzz_UNPARSED_ARGUMENTS}'")
    endif()
    get_filename_component(corpus "${fuzz_CORPUS}" ABSOLUTE)
    add_executable(${name} ${fuzz_SOURCES})
    obase_set_test_executable(${name} ${fuzz_LIBS})
    if(OBASE_FUZZ)
        target_link_options(${name} PRIVATE -fsanitize=fuzzer)
        # The first directory receives new inputs, so it is not the committed one.
        set(found "${CMAKE_CURRENT_BINARY_DIR}/${name}.found")
        file(MAKE_DIRECTORY "${found}")
        add_test(NAME ${name} COMMAND ${name} -seed=1 -runs=200000 "${found}" "${corpus}")
        set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 604800)
    else()
        target_link_libraries(${name} PRIVATE obase_fuzz_replay_main)
        add_test(NAME ${name} COMMAND ${name} "${corpus}")
        set_tests_properties(${name} PROPERTIES LABELS "ci;fuzz")
        if(fuzz_LONG)
            add_test(NAME ${name}.long COMMAND ${name} "${corpus}" ${fuzz_LONG})
            set_tests_properties(${name}.long PROPERTIES LABELS long TIMEOUT 604800)
        endif()
    endif()
endfunction()

function(obase_add_benchmark name)
    if(NOT OBASE_BUILD_TESTS)
        return()
    endif()
    cmake_parse_arguments(PARSE_ARGV 1 bench "" "" "SOURCES;LIBS")
    if(NOT bench_SOURCES OR bench_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "obase_add_benchmark(${name}): SOURCES missing, or not understood: "
                            "'${bench_UNPARSED_ARGUMENTS}'")
    endif()
    add_executable(${name} ${bench_SOURCES})
    obase_set_test_executable(${name} ${bench_LIBS})
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
    add_test(NAME ${name}.smoke COMMAND ${name} --smoke)
    set_tests_properties(${name}.smoke PROPERTIES LABELS "ci;bench")
endfunction()
