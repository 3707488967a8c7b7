// SPDX-License-Identifier: MIT
//
// obase::string: a string that may be moved byte by byte, for members of managed objects.
//
// Up to 22 characters inside the object, longer ones in memory from malloc, and no pointer to
// itself (libstdc++'s std::string has one, so it cannot be relocated, R15).
//
//     struct user { obase::string name; };    // trivially relocatable once the user says so
//     template <> struct obase::is_relocatable<user> : std::true_type {};
//
// Outside of managed objects, use std::string. For an object that is nothing but its text,
// obase::bytes needs no second allocation, and its text moves along.
//
// Threads: as std::string.
#pragma once

#include <obase/language.hpp>

#include <obase/errors.hpp>
#include <obase/owner.hpp>
#include <obase/relocatable.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace obase {

template <class T>
concept text_like = std::convertible_to<const T&, std::string_view>;

class string {
  public:
    static constexpr std::size_t inline_capacity = 22;

    string() noexcept { set_inline_size(0); }
    // From std::string, std::string_view, const char*, obase::bytes.
    template <text_like Text>
        requires(!std::same_as<Text, string>)
    string(const Text& text) : string() {
        assign(std::string_view(text));
    }
    string(const string& other) : string(other.view()) {}
    string(string&& other) noexcept { take(other); }
    string& operator=(const string& other) {
        if (this != &other) assign(other.view());
        return *this;
    }
    string& operator=(string&& other) noexcept {
        if (this != &other) {
            release();
            take(other);
        }
        return *this;
    }
    template <text_like Text>
        requires(!std::same_as<Text, string>)
    string& operator=(const Text& text) {
        assign(std::string_view(text));
        return *this;
    }
    ~string() { release(); }

    std::size_t size() const noexcept {
        return is_inline() ? static_cast<std::size_t>(tag()) : far().size;
    }
    std::size_t length() const noexcept { return size(); }
    bool empty() const noexcept { return size() == 0; }
    std::size_t capacity() const noexcept {
        return is_inline() ? inline_capacity : far().capacity & ~far_mark;
    }
    static constexpr std::size_t max_size() noexcept { return (std::size_t{1} << 62) - 2; }

    // Null-terminated.
    const char* data() const noexcept { return is_inline() ? bytes_ : far().text; }
    char* data() noexcept { return is_inline() ? bytes_ : far().text; }
    const char* c_str() const noexcept { return data(); }
    std::string_view view() const noexcept { return {data(), size()}; }
    operator std::string_view() const noexcept { return view(); }
    std::string str() const { return std::string(view()); }

    char* begin() noexcept { return data(); }
    char* end() noexcept { return data() + size(); }
    const char* begin() const noexcept { return data(); }
    const char* end() const noexcept { return data() + size(); }
    // Precondition: i < size().
    char& operator[](std::size_t i) noexcept { return data()[i]; }
    const char& operator[](std::size_t i) const noexcept { return data()[i]; }

    // These throw std::bad_alloc or std::length_error and then change nothing. `text` may be a part
    // of this string.
    void assign(std::string_view text) {
        if (text.size() > capacity()) {
            string larger;
            larger.grow_to(text.size());
            larger.append(text);
            *this = std::move(larger);
            return;
        }
        std::memmove(data(), text.data(), text.size());
        set_size(text.size());
    }
    string& append(std::string_view text) {
        const std::size_t old = size();
        if (text.size() > max_size() - old) errors::too_long("obase::string::append");
        if (old + text.size() > capacity()) {
            string larger;
            larger.grow_to(std::max(old + text.size(), 2 * old));
            larger.append(view());
            larger.append(text);
            *this = std::move(larger);
            return *this;
        }
        if (!text.empty()) std::memmove(data() + old, text.data(), text.size());
        set_size(old + text.size());
        return *this;
    }
    string& operator+=(std::string_view text) { return append(text); }
    void push_back(char c) { append(std::string_view(&c, 1)); }
    void clear() noexcept { set_size(0); }
    void reserve(std::size_t characters) {
        if (characters <= capacity()) return;
        string larger;
        larger.grow_to(characters);
        larger.append(view());
        *this = std::move(larger);
    }
    void resize(std::size_t characters, char fill = '\0') {
        const std::size_t old = size();
        reserve(characters);
        if (characters > old) std::memset(data() + old, fill, characters - old);
        set_size(characters);
    }
    void swap(string& other) noexcept {
        string kept = std::move(other);
        other = std::move(*this);
        *this = std::move(kept);
    }
    friend void swap(string& a, string& b) noexcept { a.swap(b); }

    template <text_like Text>
    friend bool operator==(const string& a, const Text& b) noexcept {
        return a.view() == std::string_view(b);
    }
    template <text_like Text>
    friend std::strong_ordering operator<=>(const string& a, const Text& b) noexcept {
        return a.view() <=> std::string_view(b);
    }
    friend std::ostream& operator<<(std::ostream& out, const string& s) { return out << s.view(); }

  private:
    // 24 bytes. Inline: 22 characters, a terminator, and the size in the last byte. Far: pointer,
    // size, capacity with its top bit set, which is the top bit of that same last byte.
    struct far_text {
        char* text;
        std::size_t size;
        std::size_t capacity;
    };
    static constexpr std::size_t far_mark = std::size_t{1} << 63;
    static_assert(sizeof(far_text) == 24 && inline_capacity + 2 == sizeof(far_text));

    unsigned char tag() const noexcept { return static_cast<unsigned char>(bytes_[23]); }
    bool is_inline() const noexcept { return (tag() & 0x80) == 0; }
    far_text far() const noexcept {
        far_text f;
        std::memcpy(&f, bytes_, sizeof f);
        return f;
    }
    void set_far(const far_text& f) noexcept { std::memcpy(bytes_, &f, sizeof f); }
    void set_inline_size(std::size_t size) noexcept {
        bytes_[size] = '\0';
        bytes_[23] = static_cast<char>(size);
    }
    void set_size(std::size_t size) noexcept {
        if (is_inline()) {
            set_inline_size(size);
            return;
        }
        far_text f = far();
        f.size = size;
        set_far(f);
        f.text[size] = '\0';
    }
    // Precondition: empty and inline.
    void grow_to(std::size_t characters) {
        if (characters > max_size()) errors::too_long("obase::string");
        if (characters <= inline_capacity) return;
        auto* text = static_cast<char*>(std::malloc(characters + 1));
        if (text == nullptr) errors::out_of_memory();
        text[0] = '\0';
        set_far({text, 0, characters | far_mark});
    }
    void release() noexcept {
        if (!is_inline()) std::free(far().text);
    }
    void take(string& other) noexcept {
        std::memcpy(bytes_, other.bytes_, sizeof bytes_);
        other.set_inline_size(0);
    }

    alignas(8) char bytes_[24];
};

static_assert(sizeof(string) == 24);
template <>
struct is_relocatable<string> : std::true_type {};

// A managed string with a copy of `text`. Throws std::bad_alloc.
template <class Protocol = arming>
owner<string, Protocol> make_string(std::string_view text) {
    return make_managed<string, Protocol>(text);
}

} // namespace obase

template <>
struct std::hash<obase::string> {
    std::size_t operator()(const obase::string& s) const noexcept {
        return std::hash<std::string_view>{}(s.view());
    }
};
