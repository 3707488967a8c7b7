# SPDX-License-Identifier: MIT
#
# Flags of every file compiled in this tree: language, optimization, warnings, sanitizers. They are
# set for the directory, not exported: a program that uses the installed library keeps its own.

if(NOT CMAKE_CXX_COMPILER_ID MATCHES "^(GNU|Clang)$")
    message(WARNING "obase is tested with g++ 12 and clang 19, not with ${CMAKE_CXX_COMPILER_ID}")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL)
    if(NOT CMAKE_BUILD_TYPE)
        set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
    endif()
    # CMake's own RelWithDebInfo is -O2 -g; measured numbers are of -O3. -g1 is what a profiler and
    # a backtrace need; -g would double the time to compile (the preset `debug` has it).
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g1 -DNDEBUG")
    set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1 -DNDEBUG")
endif()

# One set of objects serves libobase.a and libobase.so: position independent, nothing exported that
# is not marked OBASE_EXPORT, and thread-local variables at a fixed offset from the thread pointer
# (a dereference or a scope entry must not call __tls_get_addr).
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
add_compile_options(-ftls-model=initial-exec)

set(obase_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion)
set(obase_cxx_warnings -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC bug 105651: g++ 12 sees overlapping copies inside std::string's operator+ where none are.
    list(APPEND obase_cxx_warnings -Wno-restrict)
endif()
if(OBASE_WERROR)
    list(APPEND obase_warnings -Werror)
endif()
add_compile_options(${obase_warnings} "$<$<COMPILE_LANGUAGE:CXX>:${obase_cxx_warnings}>")

if(OBASE_SANITIZE)
    string(REPLACE "," ";" obase_sanitizers "${OBASE_SANITIZE}")
    foreach(sanitizer IN LISTS obase_sanitizers)
        if(NOT sanitizer MATCHES "^(address|thread|undefined)$")
            message(FATAL_ERROR "OBASE_SANITIZE: '${sanitizer}' is none of address, thread, undefined")
        endif()
    endforeach()
    if("address" IN_LIST obase_sanitizers AND "thread" IN_LIST obase_sanitizers)
        message(FATAL_ERROR "OBASE_SANITIZE: address and thread exclude each other")
    endif()
    list(JOIN obase_sanitizers "," obase_sanitizers)
    add_compile_options(-fsanitize=${obase_sanitizers} -fno-sanitize-recover=all
                        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${obase_sanitizers})
endif()

if(OBASE_FUZZ)
    if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "OBASE_FUZZ needs clang: libFuzzer is part of it (preset: fuzz)")
    endif()
    add_compile_options(-fsanitize=fuzzer-no-link)
    add_link_options(-fsanitize=fuzzer-no-link)
endif()

find_program(OBASE_CCACHE ccache)
if(OBASE_CCACHE AND PROJECT_IS_TOP_LEVEL)
    foreach(language IN ITEMS C CXX)
        if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
            set(CMAKE_${language}_COMPILER_LAUNCHER "${OBASE_CCACHE}")
        endif()
    endforeach()
endif()
