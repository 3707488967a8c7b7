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
obase_add_test(scope_check_test SOURCES scope_check_test.cpp LABELS ci sanitize)

# O7: what make_guide must refuse to compile, and with which words. Both compilers, where both exist:
# their traits may differ, and each prints a static_assert in its own way.
function(obase_add_compile_cases)
    find_program(OBASE_OTHER_GCC NAMES g++-12 g++)
    find_program(OBASE_OTHER_CLANG NAMES clang++-19 clang++)
    foreach(compiler IN ITEMS "${OBASE_OTHER_GCC}" "${OBASE_OTHER_CLANG}")
        if(NOT compiler)
            continue()
        endif()
        get_filename_component(id "${compiler}" NAME)
        set(compile "${compiler}" -std=c++20 -fsyntax-only -I "${PROJECT_SOURCE_DIR}/include"
                    "${CMAKE_CURRENT_SOURCE_DIR}/refused_types.cpp")
        add_test(NAME accepted_types.${id} COMMAND ${compile})
        set_tests_properties(accepted_types.${id} PROPERTIES LABELS ci)
        foreach(type IN ITEMS string self_pointer uncopyable_self_pointer too_aligned)
            set(text "objects of this type cannot be moved byte by byte")
            if(type STREQUAL "too_aligned")
                set(text "alignments above 4096 are not supported")
            endif()
            add_test(NAME refused_type.${type}.${id} COMMAND ${compile} -DREFUSED_TYPE=${type})
            set_tests_properties(refused_type.${type}.${id} PROPERTIES
                LABELS ci PASS_REGULAR_EXPRESSION "${text}")
        endforeach()
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
