# SPDX-License-Identifier: MIT
#
# What is short, wrong or forbidden: tests of how the runtime lives with it. Included by CMakeLists.txt
# of this directory.
obase_add_test(shortage_test SOURCES shortage_test.cpp LABELS ci long soak sanitize
               LIBS ${CMAKE_DL_LIBS})
obase_add_test(cold_file_test SOURCES cold_file_test.cpp LABELS ci sanitize)
# Settings of the machine: nothing else runs meanwhile, and it says why where it may not.
obase_add_test(machine_settings_test SOURCES machine_settings_test.cpp LABELS ci SERIAL
               ENV OBASE_TEST_MACHINE=1)
obase_add_test(debug_rearm_test SOURCES debug_rearm_test.cpp LABELS ci sanitize)
obase_add_test(c_interface_test SOURCES c_interface_test.c NO_MAIN LABELS ci sanitize REARM)
obase_add_test(guide_types_test SOURCES guide_types_test.cpp LABELS ci sanitize REARM
    ENV OBASE_POISON_FREED=1)
obase_add_test(scope_check_test SOURCES scope_check_test.cpp LABELS ci sanitize)
obase_add_test(invalid_free_test SOURCES invalid_free_test.cpp LABELS ci sanitize)

# What the headers must accept and what they must refuse to compile, with which words (O7). Both
# compilers, where both exist: their traits may differ, and each prints a static_assert in its own way.
# The first of `words` is the test's name, the second what the compiler must say.
function(obase_add_compile_cases)
    find_program(OBASE_OTHER_GCC NAMES g++-12 g++)
    find_program(OBASE_OTHER_CLANG NAMES clang++-19 clang++)
    set(here "${CMAKE_CURRENT_SOURCE_DIR}")
    foreach(compiler IN ITEMS "${OBASE_OTHER_GCC}" "${OBASE_OTHER_CLANG}")
        if(NOT compiler)
            continue()
        endif()
        get_filename_component(id "${compiler}" NAME)
        set(common "${compiler}" -fsyntax-only -I "${PROJECT_SOURCE_DIR}/include")
        set(compile ${common} -std=c++20)

        foreach(source IN ITEMS types conversions)
            add_test(NAME accepted_${source}.${id}
                     COMMAND ${compile} "${here}/refused_${source}.cpp")
            add_test(NAME accepted_${source}.no_exceptions.${id}
                     COMMAND ${compile} -fno-exceptions "${here}/refused_${source}.cpp")
            set_tests_properties(accepted_${source}.${id} accepted_${source}.no_exceptions.${id}
                                 PROPERTIES LABELS ci)
        endforeach()
        # One error with the reason, and the end of the compilation.
        add_test(NAME refused_standard.${id}
                 COMMAND ${common} -std=c++17 "${here}/refused_types.cpp")
        set_tests_properties(refused_standard.${id} PROPERTIES LABELS ci
            PASS_REGULAR_EXPRESSION "error: [^\n]*obase's C.. headers need C..20"
            FAIL_REGULAR_EXPRESSION "error: .*error: .*error: ")

        set(not_movable "objects of this type cannot be moved byte by byte")
        foreach(words IN ITEMS
                "types string|obase::make_string.text."
                "types array_of_strings|${not_movable}"
                "types self_pointer|template <> struct obase::is_relocatable<T> : std::true_type {}"
                "types uncopyable_self_pointer|${not_movable}"
                "types too_aligned|alignments above 4096 are not supported"
                "types bytes|obase::make_bytes.text."
                "types mixed_member|cannot contain guides of another"
                "types mixed_in_a_member|cannot contain guides of another"
                "types mixed_array|cannot contain guides of another"
                "types bounded_array|obase::make_managed<T\\[\\]>.n."
                "conversions second_base|make it the first base"
                "conversions virtual_base|a guide of a virtual base cannot hold"
                "conversions without_virtual_destructor|the base needs a virtual destructor")
            string(REGEX MATCH "^([a-z]+)s ([a-z_]+)[|](.*)$" matched "${words}")
            set(name refused_${CMAKE_MATCH_1}.${CMAKE_MATCH_2}.${id})
            set(text "${CMAKE_MATCH_3}")
            string(TOUPPER "REFUSED_${CMAKE_MATCH_1}" macro)
            add_test(NAME ${name}
                     COMMAND ${compile} -D${macro}=${CMAKE_MATCH_2} "${here}/refused_${CMAKE_MATCH_1}s.cpp")
            set_tests_properties(${name} PROPERTIES LABELS ci PASS_REGULAR_EXPRESSION "${text}")
        endforeach()
    endforeach()

    # The C interface, as the oldest C that has what it needs sees it.
    foreach(header IN ITEMS obase.h marked.h)
        add_test(NAME c99.${header} COMMAND "${CMAKE_C_COMPILER}" -std=c99 -pedantic -Wall -Wextra -Werror
                 -fsyntax-only -x c "${PROJECT_SOURCE_DIR}/include/obase/${header}"
                 -I "${PROJECT_SOURCE_DIR}/include")
        set_tests_properties(c99.${header} PROPERTIES LABELS ci)
    endforeach()
endfunction()

if(OBASE_BUILD_TESTS)
    # In the header, so the library need not be built with it.
    if(NOT OBASE_DEBUG_CHECKS)
        target_compile_definitions(scope_check_test PRIVATE OBASE_DEBUG_CHECKS=1)
    endif()
    obase_add_compile_cases()
endif()
obase_add_fuzzer(script_fuzz SOURCES script_fuzz.cpp CORPUS script_corpus)
