// SPDX-License-Identifier: MIT
//
// What valsort checks: count, order, duplicates, and a checksum that does not depend on the order (the
// sum of the CRC-32 of every record, as gensort's -c prints it), for records of any format and key.
#pragma once

#include "wiscsort/format/key_spec.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace wiscsort::bench {

struct checked {
    std::uint64_t records = 0, bytes = 0;
    std::uint64_t duplicates = 0; // records whose key is that of the one before
    bool sorted = true;
    std::uint64_t first_unsorted = 0; // number of the first record that is before its predecessor
    std::string place;                // of it: file and offset
    // 128 bits. Lines are summed without a terminator that the file lacks.
    std::uint64_t sum_high = 0, sum_low = 0;
    std::string checksum() const;
    // Depends on the order, too: equal for equal sequences of records.
    std::uint64_t sequence = 0;
};

// CRC-32 of zlib (reflected 04C11DB7).
std::uint32_t crc32(const char* data, std::size_t size);

checked check(const std::vector<std::string>& inputs, const record_format& format,
              const key_spec::options& keys);

} // namespace wiscsort::bench
