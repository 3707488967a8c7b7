// SPDX-License-Identifier: MIT
//
// Allocation in NEAR beside NEW: processor time of allocating and freeing objects of 64 bytes, in turns. Prints one
// line for each case, with the ratio of the speeds.
#include "heap/space.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

using namespace obase::heap;

template <class Work>
double seconds_of(Work&& work) {
    const std::clock_t begin = std::clock();
    work();
    return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

} // namespace

int main(int argc, char** argv) {
    const bool smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0;
    const std::size_t objects = smoke ? 2'000 : 400'000;
    const int rounds = smoke ? 2 : 15;
    std::string why;
    space* const heaps = space::create({}, &why);
    if (heaps == nullptr) {
        std::fprintf(stderr, "near_bench: %s\n", why.c_str());
        return 1;
    }
    std::vector<void*> made(objects);
    // `per_group`: allocated one after the other, near the one before; 0: in NEW.
    const auto fill = [&](std::size_t per_group) {
        space::neighbour found;
        group_name name = 0;
        if (per_group == 0) {
            for (void*& one : made) one = heaps->allocate(64, {});
            return;
        }
        void* last = nullptr;
        std::size_t left = 0;
        for (void*& one : made) {
            if (left == 0) {
                name = 0;
                last = heaps->allocate_placed(64, {}, {nullptr, &name, {}}, &found);
                left = per_group;
            } else {
                last = heaps->allocate_placed(64, {}, {last, nullptr, {}}, &found);
            }
            --left;
            one = last;
        }
    };
    const auto free_all = [&] {
        for (void* const object : made) heaps->free(object);
    };
    for (const std::size_t per_group : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) {
        std::vector<double> allocation, both;
        for (int round = 0; round < rounds; ++round) {
            double times[2][2];
            for (const std::size_t which : {std::size_t{0}, std::size_t{1}}) {
                times[which][0] = seconds_of([&] { fill(which == 0 ? 0 : per_group); });
                times[which][1] = seconds_of(free_all);
            }
            allocation.push_back(times[0][0] / std::max(times[1][0], 1e-9));
            both.push_back((times[0][0] + times[0][1]) / std::max(times[1][0] + times[1][1], 1e-9));
        }
        std::sort(allocation.begin(), allocation.end());
        std::sort(both.begin(), both.end());
        std::printf("near / new, 64 bytes, %zu in a group: allocation %.2f, with frees %.2f\n",
                    per_group, allocation[allocation.size() / 2], both[both.size() / 2]);
    }
    space::destroy(heaps);
    return 0;
}
