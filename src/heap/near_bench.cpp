// SPDX-License-Identifier: MIT
//
// Allocation in NEAR, and births in HOT, COLD and runs of once, beside NEW: each thread's processor time of allocating and
// freeing objects of 64 bytes, in turns with NEW. Prints one line for each case, with the ratio of the speeds.
//
// usage: near_bench [--smoke] [--threads N] [--objects N] [--rounds N] [--only CASE]
//
// Instructions of an allocation: what callgrind collects, divided by objects and rounds:
//     valgrind --tool=callgrind '--toggle-collect=*fill_requested*' build/bin/near_bench --objects 40000 --rounds 3 --only near64
// and with *fill_new*, of one in NEW.
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
// expected alone.
struct request {
    const char* name;
    std::size_t per_group;
    expectation expect;
};
constexpr request requests[] = {
    {"near1", 1, expectation::nothing}, // in a group
    {"near8", 8, expectation::nothing}, {"near64", 64, expectation::nothing},
    {"hot", 0, expectation::hot},       {"cold", 0, expectation::cold},
    {"once", 0, expectation::once},
};

[[gnu::noinline]] void fill_new(space& heaps, std::vector<void*>& made) {
    for (void*& one : made) one = heaps.allocate(size, {});
}

[[gnu::noinline]] void fill_requested(space& heaps, const request& what, std::vector<void*>& made) {
    space::neighbour found;
    if (what.per_group == 0) {
        for (void*& one : made)
            one = heaps.allocate_placed(size, {}, {nullptr, nullptr, what.expect, true}, &found);
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
void run(space& heaps, std::size_t objects, int rounds, const char* only, bool collects,
         times (&into)[std::size(requests)]) {
    std::vector<void*> made(objects);
    const auto per_object = 1 / static_cast<double>(objects);
    const auto measure = [&](auto&& fill, std::vector<double>& allocation,
                             std::vector<double>& both) {
        const double one = ns_of(fill);
        const double other = ns_of([&] {
            for (void* const object : made) heaps.free(object);
        });
        allocation.push_back(one * per_object);
        both.push_back((one + other) * per_object);
    };
    for (std::size_t i = 0; i < std::size(requests); ++i) {
        if (only != nullptr && std::strcmp(only, requests[i].name) != 0) continue;
        for (int round = 0; round < rounds; ++round) {
            measure([&] { fill_new(heaps, made); }, into[i].allocation_new, into[i].both_new);
            measure([&] { fill_requested(heaps, requests[i], made); }, into[i].allocation,
                    into[i].both);
            if (requests[i].per_group != 0 || !collects) continue;
            heaps.decommit_free_memory();
            heaps.allow_births_of_once(true);
        }
    }
}

} // namespace

int main(int argc, char** argv) {
    std::size_t objects = 400'000;
    int rounds = 15;
    unsigned threads = 1;
    const char* only = nullptr;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        const bool has_number = i + 1 < argc && std::atoi(argv[i + 1]) > 0;
        if (name == "--smoke") {
            objects = 2'000;
            rounds = 2;
        } else if (name == "--threads" && has_number) {
            threads = static_cast<unsigned>(std::atoi(argv[++i]));
        } else if (name == "--objects" && has_number) {
            objects = static_cast<std::size_t>(std::atoi(argv[++i]));
        } else if (name == "--rounds" && has_number) {
            rounds = std::atoi(argv[++i]);
        } else if (name == "--only" && i + 1 < argc &&
                   std::any_of(std::begin(requests), std::end(requests), [&](const request& one) {
                       return std::strcmp(one.name, argv[i + 1]) == 0;
                   })) {
            only = argv[++i];
        } else {
            std::fprintf(stderr,
                         "near_bench: %s: usage: near_bench [--smoke] [--threads N] "
                         "[--objects N] [--rounds N] "
                         "[--only near1|near8|near64|hot|cold|once]\n",
                         argv[i]);
            return 2;
        }
    }
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
            run(*heaps, objects, rounds, only, false, dropped);
        });
    run(*heaps, objects, rounds, only, true, all);
    for (std::thread& other : others) other.join();
    for (std::size_t i = 0; i < std::size(requests); ++i) {
        if (all[i].allocation.empty()) continue;
        const double allocation = median(all[i].allocation), both = median(all[i].both);
        const double allocation_new = median(all[i].allocation_new);
        std::printf("%-6s / new, %zu bytes, %u threads: allocation %.2f (%.1f ns, %.1f ns), "
                    "with frees %.2f\n",
                    requests[i].name, size, threads, allocation_new / allocation, allocation,
                    allocation_new, median(all[i].both_new) / both);
    }
    space::destroy(heaps);
    return 0;
}
