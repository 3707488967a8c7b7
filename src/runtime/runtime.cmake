# SPDX-License-Identifier: MIT
obase_add_test(guide_test SOURCES guide_test.cpp LABELS ci sanitize REARM)
obase_add_test(string_test SOURCES string_test.cpp LIBS rapidcheck rapidcheck_gtest LABELS ci sanitize)
obase_add_test(runtime_test SOURCES runtime_test.cpp LABELS ci sanitize)
# die_after_fork: ThreadSanitizer else ends a child of a fork that starts a thread.
obase_add_test(lifecycle_test SOURCES lifecycle_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test(threads_test SOURCES threads_test.cpp LABELS ci long soak sanitize REARM
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test(reclaim_test SOURCES reclaim_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
if(TARGET reclaim_test)
    add_library(drain_plugin MODULE drain_plugin.cpp)
    target_include_directories(drain_plugin PRIVATE "${PROJECT_SOURCE_DIR}/src")
    set_target_properties(drain_plugin PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
    add_dependencies(reclaim_test drain_plugin)
    target_link_libraries(reclaim_test PRIVATE ${CMAKE_DL_LIBS})
    target_compile_definitions(reclaim_test PRIVATE
        OBASE_TEST_DRAIN_PLUGIN="$<TARGET_FILE:drain_plugin>")
endif()
obase_add_test(cold_fork_test SOURCES cold_fork_test.cpp LABELS ci long soak sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test(stress_test SOURCES stress_test.cpp LABELS ci long soak sanitize REARM
    ENV OBASE_POISON_FREED=1)
# detect_stack_use_after_return: AddressSanitizer else keeps the variables of frames outside of the stack.
obase_add_test(marked_test SOURCES marked_test.cpp LABELS ci sanitize REARM
    ENV OBASE_POISON_FREED=1 TSAN_OPTIONS=die_after_fork=0
        ASAN_OPTIONS=detect_stack_use_after_return=0)
obase_add_test(marked_atc_test SOURCES marked_atc_test.cpp LABELS ci sanitize
    ENV OBASE_POISON_FREED=1 TSAN_OPTIONS=die_after_fork=0
        ASAN_OPTIONS=detect_stack_use_after_return=0)
obase_add_test(marked_obligations_test SOURCES marked_obligations_test.cpp LIBS obase_testing
    LABELS ci long soak sanitize)
obase_add_test(peak_memory_test SOURCES peak_memory_test.cpp LABELS ci)
obase_add_test(eight_tiers_test SOURCES eight_tiers_test.cpp LABELS ci sanitize)
obase_add_test(slots_visited_test SOURCES slots_visited_test.cpp LABELS ci sanitize)
obase_add_test(fork_slots_test SOURCES fork_slots_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
if(OBASE_BUILD_TESTS)
    add_library(tls_plugin MODULE tls_plugin.cpp)
    target_compile_options(tls_plugin PRIVATE -ftls-model=global-dynamic)
    set_target_properties(tls_plugin PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test" CXX_VISIBILITY_PRESET hidden)
    add_dependencies(fork_slots_test tls_plugin)
    target_link_libraries(fork_slots_test PRIVATE ${CMAKE_DL_LIBS})
    target_compile_definitions(fork_slots_test PRIVATE
        OBASE_TEST_TLS_PLUGIN="$<TARGET_FILE:tls_plugin>")
endif()
obase_add_test(mixed_protocols_test SOURCES mixed_protocols_test.cpp LABELS ci sanitize)
obase_add_test(copies_test SOURCES copies_test.cpp)
if(OBASE_BUILD_TESTS)
    add_library(copy_plugin MODULE copy_plugin.cpp)
    target_link_libraries(copy_plugin PRIVATE obase)
    target_link_options(copy_plugin PRIVATE -Wl,--exclude-libs,ALL)
    set_target_properties(copy_plugin PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
    add_dependencies(copies_test copy_plugin)
    target_link_libraries(copies_test PRIVATE ${CMAKE_DL_LIBS})
    target_compile_definitions(copies_test PRIVATE
        OBASE_TEST_COPY_PLUGIN="$<TARGET_FILE:copy_plugin>")
endif()
