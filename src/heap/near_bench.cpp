// SPDX-License-Identifier: MIT
//
// Allocation in NEAR, and births in HOT, COLD and runs of once, beside NEW: each thread's processor time of allocating and
// freeing objects of 64 bytes, in turns with NEW. Prints one line for each case, with the ratio of the speeds.
//
// usage: near_bench [--smoke] [--threads N]
#include "heap/space.hpp"
#include "os/thread.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace obase::heap;

constexpr std::size_t size = 64;

template <class Work>
double ns_of(Work&& work) {
    const std::uint64_t begin = obase::os::thread_cpu_ns();
    work();
    return static_cast<double>(obase::os::thread_cpu_ns() - begin);
}

// What is allocated one after the other: `per_group` objects near the one before, the first in a new group; or, with 0, what is
// expected alone, and nothing is NEW.
struct request {
    const char* name;
    std::size_t per_group;
    expectation expect;
};
constexpr request in_new{"new", 0, expectation::nothing};
constexpr request requests[] = {
    {"near, 1 in a group", 1, expectation::nothing},
    {"near, 8 in a group", 8, expectation::nothing},
    {"near, 64 in a group", 64, expectation::nothing},
    {"born hot", 0, expectation::hot},
    {"born cold", 0, expectation::cold},
    {"born once", 0, expectation::once},
};

void fill(space& heaps, const request& what, std::vector<void*>& made) {
    space::neighbour found;
    if (what.per_group == 0) {
        if (what.expect == expectation::nothing)
            for (void*& one : made) one = heaps.allocate(size, {});
        else
            for (void*& one : made)
                one =
                    heaps.allocate_placed(size, {}, {nullptr, nullptr, what.expect, true}, &found);
        return;
    }
    group_name name = 0;
    void* last = nullptr;
    std::size_t left = 0;
    for (void*& one : made) {
        if (left == 0) {
            name = 0;
            last = heaps.allocate_placed(size, {}, {nullptr, &name, {}}, &found);
            left = what.per_group;
        } else {
            last = heaps.allocate_placed(size, {}, {last, nullptr, {}}, &found);
        }
        --left;
        one = last;
    }
}

struct times {
    std::vector<double> allocation, both, allocation_new, both_new; // ns per object
};

double median(std::vector<double> of) {
    std::sort(of.begin(), of.end());
    return of[of.size() / 2];
}

// `collects`: the thread gives back runs of births that are empty, as the collector does. Then pages come anew, to NEW, too.
void run(space& heaps, std::size_t objects, int rounds, bool collects,
         times (&into)[std::size(requests)]) {
    std::vector<void*> made(objects);
    const auto per_object = 1 / static_cast<double>(objects);
    const auto measure = [&](const request& what, std::vector<double>& allocation,
                             std::vector<double>& both) {
        const double one = ns_of([&] { fill(heaps, what, made); });
        const double other = ns_of([&] {
            for (void* const object : made) heaps.free(object);
        });
        allocation.push_back(one * per_object);
        both.push_back((one + other) * per_object);
    };
    for (std::size_t i = 0; i < std::size(requests); ++i)
        for (int round = 0; round < rounds; ++round) {
            measure(in_new, into[i].allocation_new, into[i].both_new);
            measure(requests[i], into[i].allocation, into[i].both);
            if (requests[i].per_group != 0 || !collects) continue;
            heaps.decommit_free_memory();
            heaps.allow_births_of_once(true);
        }
}

} // namespace

int main(int argc, char** argv) {
    bool smoke = false;
    unsigned threads = 1;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--smoke") == 0) {
            smoke = true;
        } else if (std::strcmp(argv[i], "--threads") == 0 && i + 1 < argc &&
                   std::atoi(argv[i + 1]) > 0) {
            threads = static_cast<unsigned>(std::atoi(argv[++i]));
        } else {
            std::fprintf(stderr, "usage: near_bench [--smoke] [--threads N]\n");
            return 2;
        }
    }
    const std::size_t objects = smoke ? 2'000 : 400'000;
    const int rounds = smoke ? 2 : 15;
    std::string why;
    space* const heaps = space::create({}, &why);
    if (heaps == nullptr) {
        std::fprintf(stderr, "near_bench: %s\n", why.c_str());
        return 1;
    }
    heaps->give_births(expectation::hot, 1);
    heaps->give_births(expectation::cold, 2);
    for (const unsigned cls : {1U, 2U}) heaps->allow_births(cls, UINT64_MAX);
    heaps->allow_births_of_once(true);
    times all[std::size(requests)];
    std::vector<std::thread> others;
    for (unsigned i = 1; i < threads; ++i)
        others.emplace_back([&] {
            times dropped[std::size(requests)];
            run(*heaps, objects, rounds, false, dropped);
        });
    run(*heaps, objects, rounds, true, all);
    for (std::thread& other : others) other.join();
    for (std::size_t i = 0; i < std::size(requests); ++i) {
        const double allocation = median(all[i].allocation), both = median(all[i].both);
        const double allocation_new = median(all[i].allocation_new);
        std::printf("%-20s / new, %zu bytes, %u threads: allocation %.2f (%.1f ns, %.1f ns), "
                    "with frees %.2f\n",
                    requests[i].name, size, threads, allocation_new / allocation, allocation,
                    allocation_new, median(all[i].both_new) / both);
    }
    space::destroy(heaps);
    return 0;
}
