# SPDX-License-Identifier: MIT
# A library that the test loads and unloads; it gets the path in the definition.
function(obase_add_test_plugin test plugin definition)
    if(NOT OBASE_BUILD_TESTS)
        return()
    endif()
    add_library(${plugin} MODULE ${plugin}.cpp)
    target_include_directories(${plugin} PRIVATE "${PROJECT_SOURCE_DIR}/src")
    set_target_properties(${plugin} PROPERTIES
        LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
    add_dependencies(${test} ${plugin})
    target_link_libraries(${test} PRIVATE ${CMAKE_DL_LIBS})
    target_compile_definitions(${test} PRIVATE ${definition}="$<TARGET_FILE:${plugin}>")
endfunction()

obase_add_test(guide_test SOURCES guide_test.cpp LABELS ci sanitize REARM)
obase_add_test(string_test SOURCES string_test.cpp LIBS rapidcheck rapidcheck_gtest LABELS ci sanitize)
obase_add_test(allocation_watch_test SOURCES allocation_watch_test.cpp LABELS ci sanitize_address)
obase_add_test(processor_share_test SOURCES processor_share_test.cpp)
obase_add_test(wait_credit_test SOURCES wait_credit_test.cpp)
obase_add_test(program_time_test SOURCES program_time_test.cpp)
obase_add_test(resting_program_test SOURCES resting_program_test.cpp LABELS ci sanitize)
# What makes swap, and what must not have any, take turns.
obase_add_test(backpressure_test SOURCES backpressure_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0 LOCKS swap COST 45)
obase_add_test(shorter_windows_test SOURCES shorter_windows_test.cpp LABELS ci sanitize)
obase_add_test(near_objects_test SOURCES near_objects_test.cpp LABELS ci sanitize)
obase_add_test(born_objects_test SOURCES born_objects_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test(runtime_test SOURCES runtime_test.cpp LABELS ci sanitize COST 50)
# die_after_fork: ThreadSanitizer else ends a child of a fork that starts a thread.
obase_add_test(lifecycle_test SOURCES lifecycle_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test(threads_test SOURCES threads_test.cpp LABELS ci long soak sanitize REARM
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test(stationary_set_test SOURCES stationary_set_test.cpp)
obase_add_test(replaced_values_test SOURCES replaced_values_test.cpp LABELS ci sanitize)
obase_add_test(reclaim_test SOURCES reclaim_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test_plugin(reclaim_test drain_plugin OBASE_TEST_DRAIN_PLUGIN)
obase_add_test(cold_fork_test SOURCES cold_fork_test.cpp LABELS ci long soak sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
# die_after_fork: as above.
obase_add_test(large_objects_test SOURCES large_objects_test.cpp LABELS ci long soak sanitize
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
# The audit. Each scenario is a process, and a fault is what is looked for: not under the sanitizers, which have
# handlers, and memory, of their own.
obase_add_test(audit_test SOURCES audit_test.cpp LABELS ci ENV OBASE_AUDIT=1)
obase_add_test(peak_memory_test SOURCES peak_memory_test.cpp LABELS ci)
obase_add_test(eight_tiers_test SOURCES eight_tiers_test.cpp LABELS ci sanitize)
obase_add_test(slots_visited_test SOURCES slots_visited_test.cpp LABELS ci sanitize)
obase_add_test(fork_slots_test SOURCES fork_slots_test.cpp LABELS ci sanitize
    ENV TSAN_OPTIONS=die_after_fork=0)
obase_add_test_plugin(fork_slots_test tls_plugin OBASE_TEST_TLS_PLUGIN)
if(TARGET tls_plugin)
    target_compile_options(tls_plugin PRIVATE -ftls-model=global-dynamic)
    set_target_properties(tls_plugin PROPERTIES CXX_VISIBILITY_PRESET hidden)
endif()
obase_add_test(mixed_protocols_test SOURCES mixed_protocols_test.cpp LABELS ci sanitize)
obase_add_test(copies_test SOURCES copies_test.cpp)
obase_add_test_plugin(copies_test copy_plugin OBASE_TEST_COPY_PLUGIN)
if(TARGET copy_plugin)
    target_link_libraries(copy_plugin PRIVATE obase)
    target_link_options(copy_plugin PRIVATE -Wl,--exclude-libs,ALL)
endif()
