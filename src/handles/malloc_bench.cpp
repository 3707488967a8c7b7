// SPDX-License-Identifier: MIT
//
// malloc and free in pairs, and a churn, ns for both: the C library's, malloc here, and obase_handles_malloc.
//
// usage: handles_malloc_bench [--smoke]
#include <obase/handles.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

extern "C" {
void* __libc_malloc(std::size_t);
void __libc_free(void*);
}

namespace {

using clock = std::chrono::steady_clock;

template <class Allocate, class Free>
void measure(const char* name, std::size_t rounds, Allocate allocate, Free release) {
    constexpr std::size_t kept = 4096;
    double best_pairs = 1e9;
    double best_churn = 1e9;
    for (int repetition = 0; repetition < 5; ++repetition) {
        auto begin = clock::now();
        for (std::size_t i = 0; i < rounds; ++i) {
            void* volatile p = allocate(24 + (i & 63));
            release(p);
        }
        const auto ns = [&](clock::time_point since) {
            return std::chrono::duration<double, std::nano>(clock::now() - since).count() /
                   static_cast<double>(rounds);
        };
        best_pairs = std::min(best_pairs, ns(begin));
        std::vector<void*> all(kept);
        unsigned random = 1;
        begin = clock::now();
        for (std::size_t i = 0; i < rounds; ++i) {
            random = random * 1664525U + 1013904223U;
            void*& one = all[(random >> 12) % kept];
            release(one);
            one = allocate(16 + ((random >> 24) & 127));
        }
        best_churn = std::min(best_churn, ns(begin));
        for (void* const each : all) release(each);
    }
    std::printf("%-24s pairs %6.2f ns   churn %6.2f ns\n", name, best_pairs, best_churn);
}

} // namespace

int main(int argc, char** argv) {
    const bool smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0;
    const std::size_t rounds = smoke ? 10'000 : 4'000'000;
    const unsigned long mark = obase_handles_enter();
    measure("glibc", rounds, __libc_malloc, __libc_free);
    measure("malloc", rounds, static_cast<void* (*)(std::size_t)>(std::malloc),
            static_cast<void (*)(void*)>(std::free));
    measure("obase_handles_malloc", rounds, obase_handles_malloc, obase_handles_free);
    obase_handles_leave(mark);
    return 0;
}
