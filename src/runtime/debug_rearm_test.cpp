// SPDX-License-Identifier: MIT
//
// OBASE_DEBUG_REARM=1: a program that takes the word of a guide for an address faults in its next
// operation. Without the mode it gets away with it for a window, which is why there is the mode.
#include "testing/child_process.hpp"
#include "testing/quiet_runtime.hpp"

#include <obase/obase.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using obase::testing::child_result;
using obase::testing::require;
using obase::testing::run_in_child;

struct object {
    std::uint64_t value;
};

// The mistake: the eight bytes of a guide as an address.
std::uint64_t read_without_decoding(const obase::guide<object>& g) {
    std::uint64_t word;
    std::memcpy(&word, static_cast<const void*>(&g), sizeof word);
    const object* address = nullptr;
    std::memcpy(&address, &word, sizeof word);
    asm volatile("" : "+r"(address)); // the compiler must not know
    return address->value;
}

void configure(bool rearm) {
    obase::options settings;
    settings.window_seconds = 1e6;
    settings.debug_rearm = rearm;
    require(obase::runtime::get().configure(settings).empty(), "configure");
}

bool died_of_an_address(const child_result& child) {
    // A sanitizer reports the signal and exits.
    return child.status == 1000 + SIGSEGV || child.status == 1000 + SIGBUS ||
           (child.status != 0 && child.err.find("SEGV") != std::string::npos);
}

int touch_and_read_later(bool rearm) {
    configure(rearm);
    obase::guide<object> g = obase::make_managed<object>(object{42});
    {
        obase::scope outer;
        {
            obase::scope inner;
            require(g->value == 42, "decoded");
        }
        require(read_without_decoding(g) == 42, "in the same operation the word is the address");
    }
    obase::scope next_operation;
    return read_without_decoding(g) == 42 ? 0 : 1;
}

TEST(debug_rearm, a_missed_decode_faults_in_the_next_operation) {
    const auto child = run_in_child([] { return touch_and_read_later(true); });
    EXPECT_TRUE(died_of_an_address(child)) << child.status << child.err;
}

TEST(debug_rearm, without_it_the_mistake_goes_unnoticed_within_the_window) {
    const auto child = run_in_child([] { return touch_and_read_later(false); });
    EXPECT_EQ(child.status, 0) << child.err;
}

TEST(debug_rearm, without_it_the_window_ends_the_luck) {
    const auto child = run_in_child([] {
        configure(false);
        obase::guide<object> g = obase::make_managed<object>(object{42});
        {
            obase::scope s;
            require(g->value == 42, "decoded");
        }
        require(obase::runtime::get().collect_now() == obase::collect_result::done, "done");
        obase::scope s;
        return read_without_decoding(g) == 42 ? 0 : 1;
    });
    EXPECT_TRUE(died_of_an_address(child)) << child.status << child.err;
}

// A program without the mistake works, whatever moves. (The mode hides from the collector what was
// used: objects look unused and go to COLD.)
TEST(debug_rearm, decoded_accesses_work_scope_after_scope) {
    const auto child = run_in_child([] {
        configure(true);
        std::vector<obase::guide<object>> objects;
        for (std::uint64_t i = 0; i < 1000; ++i)
            objects.emplace_back(obase::make_managed<object>(object{i}));
        for (int round = 0; round < 5; ++round) {
            for (std::uint64_t i = 0; i < objects.size(); ++i) {
                obase::scope s;
                require(objects[i]->value == i, "decoded");
            }
            require(obase::runtime::get().collect_now() == obase::collect_result::done, "done");
        }
        return 0;
    });
    EXPECT_EQ(child.status, 0) << child.err;
}

} // namespace
