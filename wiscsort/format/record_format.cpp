// SPDX-License-Identifier: MIT
#include "wiscsort/format/record_format.hpp"

#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <bit>
#include <cstring>

namespace wiscsort {

static_assert(std::endian::native == std::endian::little, "lengths are stored little-endian");

record_format record_format::parse(std::string_view text) {
    record_format format;
    if (text == "lines") return format;
    if (text == "prefixed:u32le") {
        format.kind = kinds::prefixed;
        return format;
    }
    if (text.substr(0, 6) == "fixed:") {
        format.kind = kinds::fixed;
        format.size = parse_count(text.substr(6), "--format fixed");
        if (format.size == 0 || format.size > GiB)
            refuse("--format: a record has 1 to {} bytes, not {}", GiB, format.size);
        return format;
    }
    refuse("--format: '{}' is unknown; expected fixed:N, lines or prefixed:u32le", text);
}

std::string record_format::text() const {
    switch (kind) {
    case kinds::fixed:
        return fmt::format("fixed:{}", size);
    case kinds::lines:
        return "lines";
    case kinds::prefixed:
        break;
    }
    return "prefixed:u32le";
}

std::uint32_t load_u32le(const char* at) {
    std::uint32_t value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

found find_record(const record_format& format, const char* at, std::uint64_t left,
                  record_view& view) {
    switch (format.kind) {
    case record_format::kinds::fixed:
        if (left < format.size) return found::torn;
        view.stored = view.body = {at, format.size};
        view.written_size = format.size;
        return found::whole;
    case record_format::kinds::lines: {
        const auto* end = static_cast<const char*>(std::memchr(at, format.terminator, left));
        const std::uint64_t body = end == nullptr ? left : static_cast<std::uint64_t>(end - at);
        view.body = {at, body};
        view.stored = {at, body + (end == nullptr ? 0 : 1)};
        view.written_size = body + 1;
        return found::whole;
    }
    case record_format::kinds::prefixed:
        break;
    }
    if (left < 4) return found::torn;
    const std::uint64_t size = load_u32le(at);
    if (left - 4 < size) return found::torn;
    view.stored = {at, 4 + size};
    view.body = {at + 4, size};
    view.written_size = 4 + size;
    return found::whole;
}

} // namespace wiscsort
