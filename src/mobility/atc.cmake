# SPDX-License-Identifier: MIT
#
# Tests of the ATC protocol: its word, its set of touched slots, its phases, its obligations.
if(OBASE_BUILD_TESTS)
    obase_add_test(tag_test SOURCES tag_test.cpp LIBS rapidcheck)
    obase_add_test(atc_test SOURCES atc_test.cpp LIBS obase_testing rapidcheck)
    obase_add_test(atc_obligations_test SOURCES atc_obligations_test.cpp
                   LIBS obase_testing LABELS ci long soak sanitize)
endif()
