// SPDX-License-Identifier: MIT
//
// Records for sort benchmarks. The uniform ones are those of gensort, bit by bit: 100 bytes, of which
// the first ten are the key, from a 128-bit linear congruential generator; so checksums can be compared
// with anybody's. Skewed keys and other sizes are our own.
#pragma once

#include <cstdint>
#include <string>

namespace wiscsort::bench {

struct gen_settings {
    std::uint64_t records = 0;
    std::uint64_t first = 0; // number of the first record
    bool ascii = false;      // printable, the record ends in CR LF
    bool text_lines = false; // printable, each ends in a newline (at 100 bytes: a space and one)
    bool skewed = false;     // 1/rank over a million keys
    std::uint64_t key_bytes = 10, value_bytes = 90;
};

// The output appears complete or not at all; "-" is the standard output. Throws error.
void generate(const std::string& output, const gen_settings& settings);

} // namespace wiscsort::bench
