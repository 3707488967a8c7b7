// SPDX-License-Identifier: MIT
// flags: -O2
// Addresses in front of an object that are passed to local functions which throw.
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct text {
    std::string bytes;
    ~text() {
        if ((bytes += "x").size() != 41) std::abort();
    }
};

[[gnu::noinline]] int at(const int* row, int i) {
    if (row[i] < 0) throw std::out_of_range(std::to_string(row[i]));
    return row[i];
}

// Cleans up, and hands on what it got.
[[gnu::noinline]] int sum(const int* row, int count) {
    int made = 0;
    for (int i = 1; i <= count; ++i) {
        const text here{std::string(40, char('a' + row[i] % 7))};
        made += at(row, i) + int(here.bytes.size());
    }
    return made;
}

[[gnu::noinline]] int caught(const int* row, int count) {
    try {
        return sum(row, count);
    } catch (const std::out_of_range& e) {
        return row[1] + at(row, count - 1) + int(std::string(e.what()).size());
    }
}

} // namespace

int main() {
    const auto row = std::make_unique<int[]>(6);
    for (int i = 0; i < 6; ++i) row[i] = i + 1;
    std::printf("%d\n", caught(row.get() - 1, 6)); //> 261
    row[5] = -1000;
    std::printf("%d\n", caught(row.get() - 1, 6)); //> 11
}
