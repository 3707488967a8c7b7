# SPDX-License-Identifier: MIT
#
# What is short, wrong or forbidden: tests of how the runtime lives with it. Included by CMakeLists.txt
# of this directory.
obase_add_test(shortage_test SOURCES shortage_test.cpp LABELS ci long soak sanitize
               LIBS ${CMAKE_DL_LIBS})
