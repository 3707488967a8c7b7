// SPDX-License-Identifier: MIT
//
// telemetry::json_writer: writes JSON text, member by member.
//
// Commas, quotes and escapes, so that the runtime needs no JSON library. The text is valid JSON
// (RFC 8259) for every input: control characters are escaped, bytes that are not UTF-8 become
// U+FFFD, numbers that JSON cannot say (infinities, NaN) become null.
//
// It does not read JSON. Tools have a library for both.
//
//     json_writer json;
//     json.begin_object();
//     json.member("windows", std::uint64_t{3});
//     json.end_object();
//     use(std::move(json).text());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace obase::telemetry {

class json_writer {
  public:
    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }

    void key(std::string_view name);
    void value(std::string_view text);
    void value(std::uint64_t number);
    void value(double number);

    template <class Value>
    void member(std::string_view name, const Value& content) {
        key(name);
        value(content);
    }

    std::string text() && { return std::move(text_); }

  private:
    void open(char bracket);
    void close(char bracket);
    void separate();
    void quote(std::string_view text);

    std::string text_;
    bool first_ = true; // nothing stands yet in the innermost bracket
    bool after_key_ = false;
};

// Shortest decimal that reads back as the same number; not for infinities and NaN.
std::string shortest_decimal(double number);

} // namespace obase::telemetry
