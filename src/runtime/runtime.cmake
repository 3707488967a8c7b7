# SPDX-License-Identifier: MIT
obase_add_test(guide_test SOURCES guide_test.cpp LABELS ci sanitize REARM)
obase_add_test(string_test SOURCES string_test.cpp LIBS rapidcheck rapidcheck_gtest LABELS ci sanitize)
