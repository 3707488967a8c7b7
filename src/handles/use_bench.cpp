// SPDX-License-Identifier: MIT
//
// What moving costs objects that are used all the time, and what is left of it once the collector has brought them home:
// 700,000 objects of 56 bytes, of which every seventh stays, and 2,000 of those that are read in turn. Each second: ns
// for a read, memory under the objects, runs that are open, and that came home because they were used.
//
// usage: [OBASE_HANDLES=off | OBASE_HANDLES_USED=1] handles_use_bench [--smoke]
#include <obase/handles.h>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <vector>

int main(int argc, char** argv) {
    using clock = std::chrono::steady_clock;
    const bool smoke = argc > 1 && std::strcmp(argv[1], "--smoke") == 0;
    const std::size_t count = smoke ? 20'000 : 700'000;
    const auto turn = std::chrono::milliseconds(smoke ? 10 : 1000);
    const auto at = [](long* home) { return static_cast<long*>(obase_handles_address(home)); };
    const unsigned long mark = obase_handles_enter();
    std::vector<long*> all(count);
    for (std::size_t i = 0; i < count; ++i) {
        all[i] = static_cast<long*>(obase_handles_malloc(56));
        *at(all[i]) = 1;
    }
    std::vector<long*> used;
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 7 != 0)
            obase_handles_free(all[i]);
        else if (used.size() < 2000)
            used.push_back(all[i]);
    }
    std::size_t reads = 0;
    long sum = 0;
    for (int seconds = 1; seconds <= 6; ++seconds) {
        const auto begin = clock::now();
        std::size_t now = 0;
        for (; clock::now() - begin < turn; now += used.size())
            for (long* const each : used) {
                sum += *at(each);
                if (*static_cast<volatile unsigned char*>(&obase_handles_poll_wanted) != 0)
                    obase_handles_poll();
            }
        const std::chrono::duration<double, std::nano> took = clock::now() - begin;
        reads += now;
        obase_handles_figures f{};
        obase_handles_read_figures(&f);
        std::printf("%d: %.2f ns, %.1f MiB, %lu runs open, %lu came home\n", seconds,
                    took.count() / static_cast<double>(now),
                    static_cast<double>(f.memory_bytes) / (1 << 20),
                    static_cast<unsigned long>(f.open_runs),
                    static_cast<unsigned long>(f.used_home));
    }
    obase_handles_leave(mark);
    return static_cast<std::size_t>(sum) == reads ? 0 : 1;
}
