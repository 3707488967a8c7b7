// SPDX-License-Identifier: MIT
#include "wiscsort/format/key_spec.hpp"

#include "wiscsort/error.hpp"
#include "wiscsort/units.hpp"

#include <algorithm>
#include <cctype>

namespace wiscsort {

namespace {

key_field parse_range(const std::string& text, const record_format& format) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos)
        refuse("--key: '{}' is not understood; expected OFFSET:LENGTH, as 0:10", text);
    key_field field;
    field.offset = parse_count(std::string_view(text).substr(0, colon), "--key");
    field.length = parse_count(std::string_view(text).substr(colon + 1), "--key");
    if (field.length == 0) refuse("--key: '{}' is a key of no bytes", text);
    if (format.fixed() && (field.offset > format.size || field.length > format.size - field.offset))
        refuse("--key: '{}' lies outside of a record of {} bytes", text, format.size);
    return field;
}

// F[.C][bnr]; advances `text` behind it.
struct field_position {
    std::uint64_t field = 0, character = 0;
    bool has_character = false;
    bool blanks = false, numeric = false, reverse = false;
};

field_position parse_position(std::string_view& text, const std::string& whole) {
    const auto number = [&] {
        std::size_t digits = 0;
        while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])))
            ++digits;
        if (digits == 0)
            refuse("-k: '{}' is not understood; expected F[.C][bnr][,F[.C][bnr]], as 2,2n", whole);
        const std::uint64_t value = parse_count(text.substr(0, digits), "-k");
        text.remove_prefix(digits);
        return value;
    };
    field_position position;
    position.field = number();
    if (position.field == 0) refuse("-k: '{}': fields are counted from 1", whole);
    if (!text.empty() && text.front() == '.') {
        text.remove_prefix(1);
        position.character = number();
        position.has_character = true;
    }
    for (; !text.empty() && text.front() != ','; text.remove_prefix(1)) {
        switch (text.front()) {
        case 'b':
            position.blanks = true;
            break;
        case 'n':
            position.numeric = true;
            break;
        case 'r':
            position.reverse = true;
            break;
        default:
            refuse("-k: '{}': the option '{}' is none of b, n, r", whole, text.front());
        }
    }
    return position;
}

key_field parse_field(const std::string& whole, const key_spec::options& options) {
    std::string_view text = whole;
    const field_position start = parse_position(text, whole);
    if (start.has_character && start.character == 0)
        refuse("-k: '{}': characters of the first position are counted from 1", whole);
    key_field field;
    field.by_bytes = false;
    field.first = start.field - 1;
    field.first_char = start.has_character ? start.character - 1 : 0;
    field.skip_start_blanks = start.blanks;
    bool own_options = start.blanks || start.numeric || start.reverse;
    field.numeric = start.numeric;
    field.reverse = start.reverse;
    if (!text.empty()) {
        text.remove_prefix(1);
        const field_position end = parse_position(text, whole);
        if (!text.empty()) refuse("-k: '{}': a key has one beginning and one end", whole);
        field.has_end = true;
        // A whole field ends where the next one begins; characters count inside the field.
        field.last = end.character == 0 ? end.field : end.field - 1;
        field.last_char = end.character;
        field.skip_end_blanks = end.blanks;
        field.numeric = field.numeric || end.numeric;
        field.reverse = field.reverse || end.reverse;
        own_options = own_options || end.blanks || end.numeric || end.reverse;
    }
    if (!own_options) {
        field.numeric = options.numeric;
        field.reverse = options.reverse;
    }
    return field;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Behind `count` fields of the text from `at` on.
std::size_t behind_fields(std::string_view text, std::uint64_t count, std::optional<char> separator,
                          bool with_last_separator) {
    std::size_t at = 0;
    while (at < text.size() && count-- > 0) {
        if (separator) {
            while (at < text.size() && text[at] != *separator) ++at;
            if (at < text.size() && (count > 0 || with_last_separator)) ++at;
        } else {
            while (at < text.size() && is_blank(text[at])) ++at;
            while (at < text.size() && !is_blank(text[at])) ++at;
        }
    }
    return at;
}

void append_bytes(std::string& out, std::string_view text) {
    for (;;) {
        const std::size_t zero = text.find('\0');
        out.append(text.substr(0, zero));
        if (zero == std::string_view::npos) break;
        out.append("\x00\xff", 2);
        text.remove_prefix(zero + 1);
    }
    out.append(2, '\0');
}

void append_number(std::string& out, std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && is_blank(text[at])) ++at;
    const bool minus = at < text.size() && text[at] == '-';
    if (minus) ++at;
    while (at < text.size() && text[at] == '0') ++at;
    const std::size_t integer = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    const std::string_view digits = text.substr(integer, at - integer);
    std::string_view fraction;
    if (at < text.size() && text[at] == '.') {
        const std::size_t begin = ++at;
        while (at < text.size() && is_digit(text[at])) ++at;
        while (at > begin && text[at - 1] == '0') --at;
        fraction = text.substr(begin, at - begin);
    }
    const bool negative = minus && (!digits.empty() || !fraction.empty());
    out.push_back(negative ? 1 : 2);
    const std::size_t from = out.size();
    // Counts below 255 take a byte; others follow as eight bytes, highest first.
    if (digits.size() < 255) {
        out.push_back(static_cast<char>(digits.size()));
    } else {
        out.push_back(static_cast<char>(255));
        for (int shift = 56; shift >= 0; shift -= 8)
            out.push_back(static_cast<char>(digits.size() >> shift));
    }
    out.append(digits).append(fraction).push_back('\0');
    if (negative)
        for (std::size_t i = from; i < out.size(); ++i) out[i] = static_cast<char>(~out[i]);
}

} // namespace

key_spec::key_spec(const options& asked, const record_format& format)
    : separator_(asked.separator) {
    const bool lines = format.kind == record_format::kinds::lines;
    if (!lines && (!asked.fields.empty() || asked.numeric || asked.separator))
        refuse("-k, -n and -t are for --format lines; for {} use --key OFFSET:LENGTH",
               format.text());
    if (!asked.fields.empty() && !asked.ranges.empty()) refuse("-k and --key exclude each other");
    if (asked.numeric && !asked.ranges.empty()) refuse("-n and --key exclude each other; use -k");
    for (const std::string& text : asked.ranges) {
        fields_.push_back(parse_range(text, format));
        fields_.back().reverse = asked.reverse;
    }
    for (const std::string& text : asked.fields) fields_.push_back(parse_field(text, asked));
    if (asked.numeric && fields_.empty()) {
        key_field number;
        number.by_bytes = false;
        number.numeric = true;
        number.reverse = asked.reverse;
        fields_.push_back(number);
    }
    // As sort(1): lines that compare equal by their fields are compared as a whole.
    if (lines && asked.ranges.empty() && !fields_.empty() && !asked.unique && !asked.stable) {
        key_field whole;
        whole.length = UINT64_MAX;
        whole.reverse = asked.reverse;
        fields_.push_back(whole);
    }
    reverse_ = asked.reverse;
    in_place_ = fields_.empty() || (fields_.size() == 1 && fields_[0].by_bytes);
    if (in_place_ && !fields_.empty()) {
        offset_ = fields_[0].offset;
        length_ = fields_[0].length;
    }
    if (!in_place_) reverse_ = false;
    if (format.fixed()) {
        for (const key_field& field : fields_) fixed_length_ += field.length;
        if (fields_.empty()) fixed_length_ = format.size;
        if (in_place_) {
            length_ = fixed_length_;
        } else {
            // Fields of fixed records never end early: they are copied without an end mark.
            offset_ = 0;
        }
    }
}

std::string_view key_spec::field_text(std::string_view body, const key_field& field) const {
    if (field.by_bytes) return range(body, field.offset, field.length);
    std::size_t begin = behind_fields(body, field.first, separator_, true);
    if (field.skip_start_blanks)
        while (begin < body.size() && is_blank(body[begin])) ++begin;
    begin = std::min<std::size_t>(body.size(), field.first_char > body.size() - begin
                                                   ? body.size()
                                                   : begin + field.first_char);
    std::size_t end = body.size();
    if (field.has_end) {
        end = behind_fields(body, field.last, separator_, field.last_char != 0);
        if (field.last_char != 0) {
            if (field.skip_end_blanks)
                while (end < body.size() && is_blank(body[end])) ++end;
            end = field.last_char > body.size() - end ? body.size() : end + field.last_char;
        }
    }
    return begin >= end ? std::string_view{} : body.substr(begin, end - begin);
}

std::string_view key_spec::encode(std::string_view body, std::string& buffer) const {
    buffer.clear();
    for (const key_field& field : fields_) {
        const std::size_t from = buffer.size();
        const std::string_view text = field_text(body, field);
        if (field.numeric)
            append_number(buffer, text);
        else if (fixed_length_ != 0)
            buffer.append(text);
        else
            append_bytes(buffer, text);
        if (field.reverse)
            for (std::size_t i = from; i < buffer.size(); ++i)
                buffer[i] = static_cast<char>(~buffer[i]);
    }
    return buffer;
}

} // namespace wiscsort
