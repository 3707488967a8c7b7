// SPDX-License-Identifier: MIT
//
// The program whose instructions are counted by tools/golden/check_instructions.py: each measured
// loop runs as many steps as the argument says, once. What differs between two runs with different
// arguments is the loops' bodies.
#include "tools/bench/dereference_loops.hpp"

#include <obase/runtime.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

using namespace obase;
using node = tools::link_node<arming, 24>;

// Names that callgrind shows, one for each row of the golden file.
#define COUNTED extern "C" [[gnu::noinline]]
COUNTED const node* plain_latency(const node* at, std::size_t n) {
    return tools::chase<tools::through_pointer>(at, n);
}
COUNTED const node* arming_latency(const node* at, std::size_t n) {
    return tools::chase<tools::through_guide>(at, n);
}
COUNTED const node* arming_latency_scope(const node* at, std::size_t n) {
    return tools::chase<tools::through_guide, node, arming::scope>(at, n);
}
COUNTED std::uint64_t plain_throughput(const guide<node>* g, std::size_t n) {
    return tools::sum<tools::through_pointer>(g, n);
}
COUNTED std::uint64_t arming_throughput(const guide<node>* g, std::size_t n) {
    return tools::sum<tools::through_guide>(g, n);
}
COUNTED std::uint64_t arming_throughput_scope(const guide<node>* g, std::size_t n) {
    return tools::sum<tools::through_guide, node, arming, arming::scope>(g, n);
}

struct object_64 {
    std::uint64_t words[8] = {};
};
// Makes an owner and ends it: one call into the library each. No slot is registered.
COUNTED void arming_owner(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
        const owner<object_64> made = make_managed<object_64>();
        asm volatile("" : : "r"(made.get()) : "memory");
    }
}

} // namespace

int main(int argc, char** argv) {
    const std::size_t steps = argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
    if (steps < 2) {
        std::fprintf(stderr, "usage: %s STEPS (at least 2)\n", argv[0]);
        return 2;
    }
    options settings;
    settings.mode = run_mode::off; // nothing is armed behind the loops' backs
    settings.heap_reserve = std::uint64_t{64} << 20;
    if (!runtime::get().configure(settings).empty()) return 1;

    // One object that refers to itself is a chain of any length.
    auto made = make_managed<node>();
    node* const loop = made.get();
    loop->next = std::move(made);
    auto* const row = new guide<node>[steps];
    for (std::size_t i = 0; i < steps; ++i) row[i] = make_managed<node>();

    std::uint64_t total = 0;
    {
        const scope all;
        loop->next.get(); // touched
        for (std::size_t i = 0; i < steps; ++i) total += row[i]->value;
    }
    // Under valgrind there may be no membarrier, and scope entry would be an exchange. The loops
    // with scopes are to show the usual way; there is no collector that could mind.
    arming::this_slot()->fenced = false;
    const node* at = loop;
    {
        const scope all;
        at = plain_latency(at, steps);
        at = arming_latency(at, steps);
        total += plain_throughput(row, steps);
        total += arming_throughput(row, steps);
    }
    at = arming_latency_scope(at, steps);
    total += arming_throughput_scope(row, steps);
    arming_owner(steps);
    loop->next.release().release_word(); // no destructor for an object that owns itself
    return at == loop && total == 0 ? 0 : 1;
}
