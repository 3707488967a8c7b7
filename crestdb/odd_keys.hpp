// SPDX-License-Identifier: MIT
//
// Keys for the tests of trees.
//
// When not to use it: outside of tests.
#pragma once

#include <cstdint>
#include <iterator>
#include <random>
#include <string>

namespace crestdb::testing {

using namespace std::string_literals;

// Keys that are hard on heads and prefixes: of few letters, zero bytes among them, prefixes of each
// other, with common beginnings longer than a head, 64 KiB long.
inline std::string odd_key(std::mt19937_64& random) {
    static const std::string beginnings[] = {"",
                                             "\0"s,
                                             "user000000",
                                             "user0000001234567",
                                             "\xff\xff\xff",
                                             "\0\0\0\0"s,
                                             "user",
                                             std::string(9, '\0'),
                                             "user0000001234567" + std::string(40, '\xff')};
    const std::uint64_t beginning = random() % 200;
    std::string key =
        beginning == 199 ? std::string(65536, 'x') : beginnings[beginning % std::size(beginnings)];
    static const char letters[] = {'\0', 'a', '0', '1', '\xff'};
    for (auto n = random() % 5; n != 0; --n) key.push_back(letters[random() % std::size(letters)]);
    return key;
}

// 30 bytes, digits at the end.
inline std::string numbered_key(std::uint64_t number) {
    std::string digits = std::to_string(number);
    return "user" + std::string(26 - digits.size(), '0') + digits;
}

} // namespace crestdb::testing
