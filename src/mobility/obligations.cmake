# SPDX-License-Identifier: MIT
#
# Tests of the arming protocol and of what it stands on: words, scopes, pins, deferred frees.
if(OBASE_BUILD_TESTS)
    obase_add_test(arming_word_test SOURCES arming_word_test.cpp LIBS rapidcheck NO_LIBRARY)
    obase_add_test(arming_mover_test SOURCES arming_mover_test.cpp LIBS obase_testing NO_LIBRARY
                   LABELS ci sanitize)
    obase_add_test(arming_obligations_test SOURCES arming_obligations_test.cpp
                   LIBS obase_testing NO_LIBRARY LABELS ci long soak sanitize)
    obase_add_test(scope_registry_test SOURCES scope_registry_test.cpp LIBS obase_testing NO_LIBRARY
                   LABELS ci long soak sanitize)
    obase_add_test(pins_test SOURCES pins_test.cpp LIBS obase_testing NO_LIBRARY
                   LABELS ci long sanitize)
    obase_add_test(reclaimer_test SOURCES reclaimer_test.cpp LIBS obase_testing rapidcheck NO_LIBRARY
                   LABELS ci long soak sanitize)
endif()
