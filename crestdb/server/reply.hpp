// SPDX-License-Identifier: MIT
//
// server::output and server::reply: what goes back to a client.
//
// output is bytes, and between them values that are sent from where they lie in the store: a large
// value is not copied, but pinned until the last byte of it was sent. The pin keeps the object from
// moving and from being freed; `sends` in the record keeps commands from changing the value in place
// (record.hpp), so a client gets the value as of its request however slowly it reads.
//
// reply writes one client's protocol, RESP2 or RESP3, into an output.
//
// Threads: one at a time.
#pragma once

#include "crestdb/server/record.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

struct iovec;

namespace crestdb::server {

class output {
  public:
    output() = default;
    output(output&&) = default;
    output& operator=(output&&) = default;

    std::string& text() noexcept { return text_; }
    // `value`: of a record in the scope that is open, which stays in place until it is sent.
    void add_value(record& r);

    bool empty() const noexcept { return pending() == 0; }
    // Bytes that are still to be sent.
    std::size_t pending() const noexcept { return text_.size() + referenced_ - sent_; }
    // Fills at most `most` pieces of what is to be sent next; returns how many.
    std::size_t pieces(iovec* into, std::size_t most) const noexcept;
    // `bytes` of that were sent.
    void sent(std::size_t bytes) noexcept;
    void clear() noexcept;
    // True if no value was added behind that byte of the text.
    bool has_no_values_behind(std::size_t text) const noexcept {
        return references_.empty() || references_.back().at < text;
    }

  private:
    class reference {
      public:
        reference(std::size_t where, record& r) : at(where), sent_record(&r), pin_(&r) {
            r.sends()++;
        }
        reference(reference&& other) noexcept
            : at(other.at), sent_record(other.sent_record), pin_(std::move(other.pin_)) {
            other.sent_record = nullptr;
        }
        reference& operator=(reference&& other) noexcept {
            end();
            at = other.at;
            sent_record = other.sent_record;
            pin_ = std::move(other.pin_);
            other.sent_record = nullptr;
            return *this;
        }
        ~reference() { end(); }
        std::string_view value() const noexcept { return sent_record->value(); }

        std::size_t at; // before this byte of the text

      private:
        void end() noexcept {
            if (sent_record != nullptr) sent_record->sends()--;
            sent_record = nullptr;
        }
        record* sent_record;
        managed_pin pin_;
    };

    std::string text_;
    std::vector<reference> references_;
    std::size_t referenced_ = 0; // bytes of them
    std::size_t sent_ = 0;       // of text and references together
};

// Values beyond `most` bytes that wait for the client throw std::bad_alloc: a reply is bounded while it is
// made, not when it is sent.
class reply {
  public:
    reply(output& to, int protocol, std::size_t most = SIZE_MAX) noexcept
        : to_(to), protocol_(protocol), most_(most) {}

    bool resp3() const noexcept { return protocol_ == 3; }
    output& to() noexcept { return to_; }

    void raw(std::string_view text) { to_.text().append(text); }
    void ok() { raw("+OK\r\n"); }
    void simple(std::string_view text) { framed('+', text); }
    // `text` begins with the code: "ERR ...".
    void error(std::string_view text) {
        ++errors_;
        framed('-', text);
    }
    void integer(std::int64_t value) { number(':', value); }
    void bulk(std::string_view text) {
        expect(text.size());
        number('$', static_cast<std::int64_t>(text.size()));
        raw(text);
        raw("\r\n");
    }
    // The value of a string, where it lies if it is large.
    void value(record& r) {
        if (!r.is_large() || r.value_size() < record::large_value) return bulk(r.value());
        expect(r.value_size());
        number('$', static_cast<std::int64_t>(r.value_size()));
        to_.add_value(r);
        raw("\r\n");
    }
    void null() { raw(resp3() ? "_\r\n" : "$-1\r\n"); }
    void null_array() { raw(resp3() ? "_\r\n" : "*-1\r\n"); }
    void array(std::size_t n) { number('*', static_cast<std::int64_t>(n)); }
    // n pairs.
    void map(std::size_t n) {
        if (resp3())
            number('%', static_cast<std::int64_t>(n));
        else
            array(2 * n);
    }
    void set(std::size_t n) { number(resp3() ? '~' : '*', static_cast<std::int64_t>(n)); }
    void number_double(double value);
    void verbatim(std::string_view text);
    std::uint64_t errors() const noexcept { return errors_; }

  private:
    void expect(std::size_t bytes) {
        if (bytes > most_ || to_.pending() > most_ - bytes) throw std::bad_alloc();
    }
    void framed(char kind, std::string_view text);
    void number(char kind, std::int64_t value) {
        char line[32];
        line[0] = kind;
        char* end = std::to_chars(line + 1, line + 28, value).ptr;
        end[0] = '\r';
        end[1] = '\n';
        to_.text().append(line, static_cast<std::size_t>(end + 2 - line));
    }

    output& to_;
    int protocol_;
    std::size_t most_;
    std::uint64_t errors_ = 0;
};

} // namespace crestdb::server
