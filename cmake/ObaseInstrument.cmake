# SPDX-License-Identifier: MIT
#
# obase_instrument(<target> [MARKS <file>...] [VISIBILITY <directory>] [TRUST <directory>]
#                  [PROTOCOL arming|atc]
#                  [LIBRARY <library target>])
#
#   Compiles the C and C++ sources of the target with the plugins of obase, so that its marked
#   pointers become slots, and links the runtime. The compiler must be clang 19. As the drivers do, it links the
#   functions by which the program's free and realloc know managed memory, but where the flags of the whole project
#   ask for a sanitizer or a static program; and, where make or ninja builds it, names the objects that were compiled
#   without the plugins and have to do with marked fields. Elsewhere the program does, when it starts.
#     MARKS        marks from outside the source (docs/compiler.md); sources are compiled anew when
#                  such a file changes
#     VISIBILITY   a directory; each source's visibility file is written there
#     TRUST        a directory; what could not be checked is written there, a file per source
#     PROTOCOL     what the words of marked pointers mean, the same for all of a program (default: arming)
#     LIBRARY      the runtime to link: obase::obase (default) or obase::obase_shared
#
# Part of the installed package, if that was built with the compiler; within this tree also.

# The folder of the plugins, where they are not targets of this build.
set(obase_installed_plugins "${CMAKE_CURRENT_LIST_DIR}/../../obase")

function(obase_instrument target)
    cmake_parse_arguments(PARSE_ARGV 1 instrument "" "VISIBILITY;TRUST;PROTOCOL;LIBRARY" "MARKS")
    if(instrument_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "obase_instrument(${target}): not understood: "
                            "'${instrument_UNPARSED_ARGUMENTS}'")
    endif()
    if(NOT instrument_PROTOCOL)
        set(instrument_PROTOCOL arming)
    elseif(NOT instrument_PROTOCOL MATCHES "^(arming|atc)$")
        message(FATAL_ERROR "obase_instrument(${target}): PROTOCOL '${instrument_PROTOCOL}' is none of "
                            "arming, atc")
    endif()
    foreach(language IN ITEMS C CXX)
        if(CMAKE_${language}_COMPILER_LOADED
           AND NOT (CMAKE_${language}_COMPILER_ID STREQUAL "Clang"
                    AND CMAKE_${language}_COMPILER_VERSION MATCHES "^19[.]"))
            message(FATAL_ERROR
                "obase_instrument(${target}): the plugins are for clang 19, and the ${language} "
                "compiler is ${CMAKE_${language}_COMPILER_ID} ${CMAKE_${language}_COMPILER_VERSION}. "
                "Configure with -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19.")
        endif()
    endforeach()

    set(folder "${obase_installed_plugins}")
    set(passes FALSE)
    if(TARGET obase_visibility)
        get_target_property(folder obase_visibility LIBRARY_OUTPUT_DIRECTORY)
        add_dependencies(${target} obase_visibility)
    endif()
    if(TARGET obase_passes)
        add_dependencies(${target} obase_passes)
        set(passes TRUE)
    elseif(EXISTS "${folder}/obase_passes.so")
        set(passes TRUE)
    endif()
    set(options "-fplugin=${folder}/obase_visibility.so")
    set(inputs "${folder}/obase_visibility.so")
    if(passes)
        list(APPEND options "-fpass-plugin=${folder}/obase_passes.so"
             # There are no such remarks; they make clang keep the places for errors. Line tables, which are not
             # loaded, are for the reports of the audit.
             "-Rpass=obase" "-gline-tables-only")
        list(APPEND inputs "${folder}/obase_passes.so")
    endif()
    foreach(file IN LISTS instrument_MARKS)
        get_filename_component(file "${file}" ABSOLUTE)
        list(APPEND options "-fplugin-arg-obase_visibility-marks=${file}")
        list(APPEND inputs "${file}")
    endforeach()
    if(instrument_VISIBILITY)
        get_filename_component(directory "${instrument_VISIBILITY}" ABSOLUTE
                               BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
        file(MAKE_DIRECTORY "${directory}")
        list(APPEND options "-fplugin-arg-obase_visibility-out=${directory}")
    endif()
    set(pass_options "")
    if(NOT instrument_PROTOCOL STREQUAL "arming")
        list(APPEND pass_options "-obase-protocol=${instrument_PROTOCOL}")
    endif()
    if(instrument_TRUST)
        get_filename_component(directory "${instrument_TRUST}" ABSOLUTE
                               BASE_DIR "${CMAKE_CURRENT_BINARY_DIR}")
        file(MAKE_DIRECTORY "${directory}")
        list(APPEND pass_options "-obase-trust=${directory}")
    endif()
    if(pass_options)
        if(NOT passes)
            message(FATAL_ERROR "obase_instrument(${target}): ${pass_options}: this obase was built "
                                "without the passes")
        endif()
        # LLVM's options are read before pass plugins are loaded, and after those of the front end.
        list(APPEND options "-fplugin=${folder}/obase_passes.so")
        foreach(option IN LISTS pass_options)
            list(APPEND options "SHELL:-Xclang -mllvm -Xclang ${option}")
        endforeach()
    endif()

    foreach(option IN LISTS options)
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C,CXX>:${option}>")
    endforeach()
    # What the objects depend on besides their sources. A compiler cache knows none of it.
    get_target_property(sources ${target} SOURCES)
    if(sources)
        set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND
                     PROPERTY OBJECT_DEPENDS ${inputs})
    endif()
    set_target_properties(${target} PROPERTIES C_COMPILER_LAUNCHER "" CXX_COMPILER_LAUNCHER "")

    if(NOT instrument_LIBRARY)
        set(instrument_LIBRARY obase::obase)
    endif()
    get_target_property(type ${target} TYPE)
    set(flags "${CMAKE_C_FLAGS} ${CMAKE_CXX_FLAGS} ${CMAKE_EXE_LINKER_FLAGS}")
    if(passes AND type STREQUAL "EXECUTABLE")
        if(NOT flags MATCHES "-fsanitize=|-static")
            target_link_libraries(${target} PRIVATE "${folder}/obase_memory.o")
        endif()
        if(CMAKE_GENERATOR MATCHES "Ninja|Makefiles")
            set_target_properties(${target} PROPERTIES
                                  RULE_LAUNCH_LINK "\"${folder}/obase-link-check\" --run")
            # The runtime need not look when the program starts (src/audit/plain_units.hpp).
            target_link_options(${target} PRIVATE "LINKER:--defsym=obase_units_checked=0")
        endif()
        foreach(made IN ITEMS obase_memory_object obase_link_check)
            if(TARGET ${made})
                add_dependencies(${target} ${made})
            endif()
        endforeach()
    endif()
    target_link_libraries(${target} PRIVATE ${instrument_LIBRARY})
endfunction()
