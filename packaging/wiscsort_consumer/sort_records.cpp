// SPDX-License-Identifier: MIT
//
// Sorts the file IN of records of 8 bytes into OUT, and says what came of it.
#include <wiscsort/wiscsort.hpp>

#include <cstdio>
#include <exception>

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    wiscsort::sort_options options;
    options.format = wiscsort::record_format::parse("fixed:8");
    options.keys.ranges = {"0:4"};
    options.memory = 4 << 20;
    try {
        const wiscsort::sort_report report = wiscsort::sort({argv[1]}, argv[2], options);
        std::printf("%llu records\n", static_cast<unsigned long long>(report.records_out));
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 1;
    }
    return 0;
}
