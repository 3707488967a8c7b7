// SPDX-License-Identifier: MIT
//
// tier(): how much time this run of the tests may take, from the environment variable
// OBASE_TEST_TIER = ci | long | soak. Unset means ci; anything else ends the process, since a
// misspelt tier would silently test less than was asked for.
//
// Example:
//     testing::exploration e{.seeds = testing::scaled(2'000, 50'000, 2'000'000)};
//
// A tier changes how often, how long and how large, never what is required.
#pragma once

#include "heap/sanitized.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace obase::testing {

enum class test_tier {
    ci,       // every push: seconds per test
    extended, // "long": minutes per test
    soak,     // hours
};

inline test_tier tier() {
    const char* text = std::getenv("OBASE_TEST_TIER");
    if (text == nullptr || *text == '\0' || std::strcmp(text, "ci") == 0) {
        return test_tier::ci;
    }
    if (std::strcmp(text, "long") == 0) {
        return test_tier::extended;
    }
    if (std::strcmp(text, "soak") == 0) {
        return test_tier::soak;
    }
    std::fprintf(stderr, "OBASE_TEST_TIER=%s: expected ci, long or soak\n", text);
    std::exit(2);
}

// The value for the current tier.
inline std::uint64_t scaled(std::uint64_t ci, std::uint64_t extended, std::uint64_t soak) {
    switch (tier()) {
    case test_tier::ci:
        return ci;
    case test_tier::extended:
        return extended;
    case test_tier::soak:
        return soak;
    }
    return ci;
}

// The same, a fifth of it with a sanitizer in the ci tier: it makes a program ten to forty times as slow,
// and finds its races in fewer rounds.
inline std::uint64_t scaled_for_build(std::uint64_t ci, std::uint64_t extended,
                                      std::uint64_t soak) {
    return scaled(heap::sanitized ? ci / 5 : ci, extended, soak);
}

// How many schedules of the deterministic scheduler, likewise: a tenth with a sanitizer in the ci tier. What
// interleavings do is the same without one. ThreadSanitizer sees no race in a schedule, since a switch to another
// fiber is a synchronization to it; AddressSanitizer has each access of the body to look at, in fewer orders.
inline std::uint64_t scaled_schedules(std::uint64_t ci, std::uint64_t extended,
                                      std::uint64_t soak) {
    return scaled(heap::sanitized ? (ci + 9) / 10 : ci, extended, soak);
}

} // namespace obase::testing
