// SPDX-License-Identifier: MIT
#include "telemetry/json_writer.hpp"

#include <charconv>
#include <cmath>

namespace obase::telemetry {

namespace {

// Length of the well-formed UTF-8 sequence at the front of `text`, 0 if there is none (overlong
// forms, surrogates and values above U+10FFFF are not well-formed).
std::size_t sequence_length(std::string_view text) {
    const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned lead = at(0);
    if (lead < 0x80) return 1;
    std::size_t length = 0;
    unsigned low = 0x80, high = 0xBF; // allowed second byte
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    }
    if (length == 0 || text.size() < length) return 0;
    if (at(1) < low || at(1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if (at(i) < 0x80 || at(i) > 0xBF) return 0;
    }
    return length;
}

} // namespace

std::string shortest_decimal(double number) {
    char buffer[32];
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, number);
    return {buffer, end.ptr};
}

void json_writer::separate() {
    if (!first_ && !after_key_) text_ += ',';
    first_ = after_key_ = false;
}

void json_writer::open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
}

void json_writer::close(char bracket) {
    text_ += bracket;
    first_ = false;
}

void json_writer::key(std::string_view name) {
    separate();
    quote(name);
    text_ += ':';
    after_key_ = true;
}

void json_writer::value(std::string_view text) {
    separate();
    quote(text);
}

void json_writer::value(std::uint64_t number) {
    separate();
    text_ += std::to_string(number);
}

void json_writer::value(double number) {
    separate();
    text_ += std::isfinite(number) ? shortest_decimal(number) : "null";
}

void json_writer::quote(std::string_view text) {
    constexpr char digits[] = "0123456789abcdef";
    text_ += '"';
    while (!text.empty()) {
        const std::size_t length = sequence_length(text);
        if (length == 0) {
            text_ += "\xEF\xBF\xBD"; // U+FFFD
            text.remove_prefix(1);
            continue;
        }
        const auto code = static_cast<unsigned char>(text[0]);
        if (code == '"' || code == '\\') {
            text_ += '\\';
            text_ += text[0];
        } else if (code < 0x20) {
            text_ += "\\u00";
            text_ += digits[code >> 4];
            text_ += digits[code & 15];
        } else {
            text_ += text.substr(0, length);
        }
        text.remove_prefix(length);
    }
    text_ += '"';
}

} // namespace obase::telemetry
