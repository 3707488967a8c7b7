// SPDX-License-Identifier: MIT
//
// Which bytes of a record decide its place. A key is a string that is compared byte by byte, as
// unsigned numbers; every option is turned into such a string once, here, and nothing above knows
// of fields, numbers or directions again (but one: `reverse`, below).
//
// A key that lies in the record as it is (the whole record, or one byte range of it) is used in
// place. Every other key is *encoded* into a buffer: fields one after the other, each so that no
// encoding of it begins another one. Bytes: 00 becomes 00 FF and the end is 00 00. Numbers: a byte
// for the sign, the count of integer digits, the digits, 00; for negative ones all but the sign
// complemented. Reversed fields are complemented.
//
// `reverse` is not encoded where the key is in place: order/ complements what it loads.
#pragma once

#include "wiscsort/format/record_format.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wiscsort {

// One field of a key. Byte ranges (--key OFF:LEN) are clipped to the record; fields of lines (-k) are
// those of sort(1).
struct key_field {
    bool by_bytes = true;
    std::uint64_t offset = 0, length = 0; // by_bytes
    // -k F[.C][OPTS][,F[.C][OPTS]], from 0: `first` fields and `first_char` bytes are skipped to the
    // beginning; the end is behind `last` whole fields and `last_char` bytes of the next.
    std::uint64_t first = 0, first_char = 0;
    bool has_end = false;
    std::uint64_t last = 0, last_char = 0;
    bool skip_start_blanks = false, skip_end_blanks = false;
    bool numeric = false, reverse = false;
};

class key_spec {
  public:
    struct options {
        std::vector<std::string> ranges; // --key
        std::vector<std::string> fields; // -k
        bool numeric = false;            // -n, for lines
        bool reverse = false;            // -r
        bool unique = false;             // no last comparison of whole lines
        bool stable = false;             // -s: likewise
        std::optional<char> separator;   // -t
    };

    // Throws usage_error: not understood, outside a fixed record, or -k/-n/-t for other formats.
    key_spec(const options& asked, const record_format& format);

    // The key of a record. The view is into `body` or into `buffer`, whose old contents are lost.
    // Thread-safe with a buffer per thread.
    std::string_view key_of(std::string_view body, std::string& buffer) const {
        if (in_place_) [[likely]]
            return range(body, offset_, length_);
        return encode(body, buffer);
    }

    bool in_place() const { return in_place_; }
    // In place only: the byte range, clipped to the body.
    std::uint64_t offset() const { return offset_; }
    std::uint64_t length() const { return length_; }
    // True if keys in place are to be sorted downwards.
    bool reverse() const { return reverse_; }
    // Bytes of a key where all have the same count; 0 where they differ.
    std::uint64_t fixed_length() const { return fixed_length_; }

  private:
    static std::string_view range(std::string_view body, std::uint64_t offset,
                                  std::uint64_t length) {
        return offset >= body.size() ? std::string_view{} : body.substr(offset, length);
    }
    std::string_view encode(std::string_view body, std::string& buffer) const;
    std::string_view field_text(std::string_view body, const key_field& field) const;

    bool in_place_ = true;
    bool reverse_ = false;
    std::uint64_t offset_ = 0;
    std::uint64_t length_ = UINT64_MAX;
    std::uint64_t fixed_length_ = 0;
    std::vector<key_field> fields_;
    std::optional<char> separator_;
};

} // namespace wiscsort
