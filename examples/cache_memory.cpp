// SPDX-License-Identifier: MIT
//
// A cache of 200,000 pages of which 4,000 are asked for, and what the process takes meanwhile:
//
//     OBASE_MODE=hint OBASE_COLD_BACKING=file:/var/tmp OBASE_WINDOW_SECONDS=1 OBASE_SHOW_STATS=1 ./example_cache_memory
//
// Pages that are asked for lie all over the memory. obase moves them together, and what is left over goes to
// the file: memory falls within some ten windows, which last a second here. The argument is for how
// many seconds it runs, 20 if there is none.
#include <obase/lru_cache.hpp>

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <thread>

namespace {

constexpr int pages = 200'000;
constexpr int step = 50; // every 50th page is asked for

long resident_mebibytes() {
    long total = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> total >> resident;
    return resident * ::sysconf(_SC_PAGESIZE) >> 20;
}

std::string url_of(int page) { return "/page/" + std::to_string(page); }
std::string text_of(int page) { return std::string(1000, static_cast<char>('a' + page % 26)); }

} // namespace

int main(int count, char** arguments) {
    char* end = nullptr;
    const double seconds = count > 1 ? std::strtod(arguments[1], &end) : 20;
    if (count > 2 || seconds <= 0 || (end != nullptr && *end != '\0')) {
        std::fprintf(stderr, "usage: %s [SECONDS]\n", arguments[0]);
        return 2;
    }
    obase::lru_cache<std::string, std::string> cache({.bytes = 1ull << 30});
    for (int page = 0; page < pages; ++page) cache.put(url_of(page), text_of(page));

    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(clock::now() - begin).count(); };
    std::mt19937 random;
    std::uniform_int_distribution<int> any(0, pages / step - 1);
    long requests = 0;
    for (double next = 0; passed() < seconds; next += 2) {
        std::printf("after %2.0f s: %ld MiB are resident, %ld requests were served\n", next,
                    resident_mebibytes(), requests);
        std::fflush(stdout);
        while (passed() < next + 2 && passed() < seconds) {
            for (int i = 0; i < 500; ++i, ++requests) {
                const int page = step * any(random);
                if (cache.get(url_of(page)) != text_of(page)) {
                    std::fprintf(stderr, "page %d is not what was put\n", page);
                    return 1;
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    std::printf("at the end: %ld MiB are resident\n", resident_mebibytes());
    return 0;
}
