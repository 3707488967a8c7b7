// SPDX-License-Identifier: MIT
#include "wiscsort/bench/gen.hpp"

#include "wiscsort/device/memory.hpp"
#include "wiscsort/device/output.hpp"
#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace wiscsort::bench {

namespace {

__extension__ using u128 = unsigned __int128;

constexpr u128 wide(std::uint64_t high, std::uint64_t low) { return (u128{high} << 64) | low; }
// gensort's generator: x -> multiplier * x + increment.
constexpr u128 multiplier = wide(0x2360ED051FC65DA4, 0x4385DF649FCCF645);
constexpr u128 increment = wide(0x4A696D4772617952, 0x4950202020202001);

// The state after `steps` from 0, in log(steps) steps.
u128 state_after(std::uint64_t steps) {
    u128 a = multiplier, c = increment, state_a = 1, state_c = 0;
    for (; steps != 0; steps >>= 1) {
        if ((steps & 1) != 0) {
            state_a = state_a * a;
            state_c = state_c * a + c;
        }
        c = c * a + c;
        a = a * a;
    }
    return state_c;
}

char hex(std::uint64_t digit) { return "0123456789ABCDEF"[digit & 15]; }

void record_number(char* to, std::uint64_t number) {
    std::memset(to, '0', 16);
    for (int i = 0; i < 16; ++i) to[16 + i] = hex(number >> (60 - 4 * i));
}

// The 100 bytes of gensort.
void make_record(char* to, u128 random, std::uint64_t number, bool ascii) {
    auto high = static_cast<std::uint64_t>(random >> 64);
    auto low = static_cast<std::uint64_t>(random);
    if (ascii) {
        for (int i = 0; i < 8; ++i, high /= 95) to[i] = static_cast<char>(' ' + high % 95);
        std::uint64_t rest = low;
        for (int i = 8; i < 10; ++i, rest /= 95) to[i] = static_cast<char>(' ' + rest % 95);
        std::memcpy(to + 10, "  ", 2);
        record_number(to + 12, number);
        std::memcpy(to + 44, "  ", 2);
        for (int i = 0; i < 13; ++i) std::memset(to + 46 + 4 * i, hex(low >> (48 - 4 * i)), 4);
        std::memcpy(to + 98, "\r\n", 2);
        return;
    }
    for (int i = 0; i < 8; ++i) to[i] = static_cast<char>(high >> (56 - 8 * i));
    to[8] = static_cast<char>(low >> 56);
    to[9] = static_cast<char>(low >> 48);
    std::memcpy(to + 10, "\x00\x11", 2);
    record_number(to + 12, number);
    std::memcpy(to + 44, "\x88\x99\xAA\xBB", 4);
    for (int i = 0; i < 12; ++i) std::memset(to + 48 + 4 * i, hex(low >> (44 - 4 * i)), 4);
    std::memcpy(to + 96, "\xCC\xDD\xEE\xFF", 4);
}

// Another key: the rank has a probability of about 1/rank.
u128 skewed(u128 random) {
    const double uniform = static_cast<double>(static_cast<std::uint64_t>(random >> 75)) / 0x1p53;
    const auto rank = static_cast<std::uint64_t>(std::exp(uniform * std::log(1e6)));
    u128 mixed = u128{rank} * multiplier;
    mixed ^= mixed >> 61;
    return mixed * multiplier;
}

} // namespace

void generate(const std::string& output, const gen_settings& s) {
    const bool standard = s.key_bytes == 10 && s.value_bytes == 90;
    const std::uint64_t size = s.key_bytes + s.value_bytes;
    if (s.key_bytes < 1 || s.key_bytes > 64 * MiB || s.value_bytes > 64 * MiB || size < 2 ||
        size > 64 * MiB)
        refuse("gen: a record has a key of at least 1 byte and 2 to {} bytes, not {}", 64 * MiB,
               size);
    if (s.ascii && !standard) refuse("gen: --ascii records have 10 + 90 bytes");
    if (s.records > (std::uint64_t{1} << 62) / size)
        refuse("gen: {} records of {} bytes are more than a file can have", s.records, size);
    if (s.records > UINT64_MAX - s.first)
        refuse("gen: {} records behind number {}: numbers end at {}", s.records, s.first,
               UINT64_MAX);
    device::output_file out(output, false);
    out.reserve(s.records * size);
    u128 random = state_after(s.first);
    const std::uint64_t at_once = std::max<std::uint64_t>(1, MiB / size);
    device::memory_block buffer(at_once * size, false);
    std::uint64_t offset = 0;
    for (std::uint64_t done = 0; done < s.records;) {
        const std::uint64_t some = std::min(at_once, s.records - done);
        for (std::uint64_t i = 0; i < some; ++i) {
            random = random * multiplier + increment;
            const u128 used = s.skewed ? skewed(random) : random;
            char* const to = buffer.data() + i * size;
            const std::uint64_t number = s.first + done + i;
            if (standard) {
                make_record(to, used, number, s.ascii || s.text_lines);
                if (s.text_lines) to[98] = ' ';
                continue;
            }
            // Key and value repeat the record's, so any two records differ in both.
            char whole[100];
            make_record(whole, used, number, s.text_lines);
            const std::uint64_t values = s.text_lines ? 88 : 90; // without CR LF
            for (std::uint64_t k = 0; k < s.key_bytes; ++k) to[k] = whole[k % 10];
            for (std::uint64_t v = 0; v < s.value_bytes; ++v)
                to[s.key_bytes + v] = whole[10 + v % values];
            if (s.text_lines) to[size - 1] = '\n';
        }
        out.write(offset, buffer.data(), some * size);
        offset += some * size;
        done += some;
    }
    out.publish(offset, false);
}

} // namespace wiscsort::bench
