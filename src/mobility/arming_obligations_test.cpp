// SPDX-License-Identifier: MIT
//
// The obligations of obligations_test.hpp for the arming protocol.
#include "mobility/obligations_test.hpp"

namespace obase::mobility {
namespace {

using scheduled = in_schedule<testing::deterministic_platform>;
using native = on_threads<os::native_platform>;

// Each body under its own name: two tests.
#define OBASE_OBLIGATION_TEST(body, ci_seeds)                                                      \
    TEST(arming_obligations, body##_scheduled) {                                                   \
        explore_schedules(#body, ci_seeds, body<scheduled, arming_protocol>);                      \
    }                                                                                              \
    TEST(arming_obligations, body##_on_threads) {                                                  \
        explore_threads(#body, body<native, arming_protocol>);                                     \
    }

OBASE_OBLIGATION_TESTS(arming_obligations, arming_protocol)

} // namespace
} // namespace obase::mobility
