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
