// SPDX-License-Identifier: MIT
//
// server::record: one managed object that holds a key, its value and what is known about it.
//
//   +--------------+----------+------------+ - - - - - - - - - - - +- - - - - - -+- - - - +-----+-------+
//   | kind + flags | key size | value size | value size, key size  | extension   | expiry | key | value |
//   |     1 B      |   1 B    |    2 B     |       4 B, 4 B        |    8 B      |  8 B   |     |       |
//   +--------------+----------+------------+ - - - - - - - - - - - +- - - - - - -+- - - - +-----+-------+
//
// The dashed fields are there if their flag is set: the wide sizes where a key has more than 255 bytes or a
// value more than 65,535, or an extension follows. Key and value lie in one object, so a string of
// 30 + 100 bytes is one of 134. A key whose type is hash or sorted set has as its value the address of a
// collection, which is ordinary memory; the fields and members in it are records of their own.
//
// The extension belongs to large strings, which are sent to clients where they lie: it counts the
// replies under way (`sends`), during which the value must not be changed in place, and has the capacity
// behind the value for APPEND and SETRANGE.
//
// Records move byte by byte, and nothing in one points into it.
//
// Threads: a record is read and written under the lock of its part of the keyspace; `sends` by any
// thread that has the record pinned.
#pragma once

#include "crestdb/server/managed.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace crestdb::server {

// What a record is. The first three are types of keys.
enum class record_kind : std::uint8_t { string, hash, sorted_set, field, member };

class record {
  public:
    // Values of this size and more are sent from where they lie.
    static constexpr std::size_t large_value = 16 * 1024;
    static constexpr std::size_t most_value = 512u << 20;
    static constexpr std::size_t most_key = 512u << 20;

    record_kind kind() const noexcept { return static_cast<record_kind>(kind_and_flags_ & 15); }
    std::string_view key() const noexcept { return {key_place(), key_size()}; }
    std::string_view value() const noexcept { return {key_place() + key_size(), value_size()}; }
    char* value_data() noexcept { return const_cast<char*>(key_place()) + key_size(); }
    std::size_t value_size() const noexcept { return is_wide() ? wide()[0] : value_size_; }

    bool has_expiry() const noexcept { return (kind_and_flags_ & expiry_flag) != 0; }
    // Unix time in milliseconds; -1 without one.
    std::int64_t expiry() const noexcept {
        std::int64_t at = -1;
        if (has_expiry()) std::memcpy(&at, expiry_place(), sizeof at);
        return at;
    }
    // Precondition: has_expiry().
    void set_expiry(std::int64_t at) noexcept {
        std::memcpy(const_cast<char*>(expiry_place()), &at, sizeof at);
    }

    bool is_large() const noexcept { return (kind_and_flags_ & extension_flag) != 0; }
    std::size_t capacity() const noexcept { return is_large() ? wide()[2] : value_size(); }
    // Precondition: is_large().
    std::atomic_ref<std::uint32_t> sends() noexcept {
        return std::atomic_ref<std::uint32_t>(wide()[3]);
    }
    // True if a thread may write into the value.
    bool is_writable() noexcept { return !is_large() || sends().load() == 0; }
    // Precondition: at most capacity(), writable.
    void set_value_size(std::size_t size) noexcept {
        if (is_wide())
            wide()[0] = static_cast<std::uint32_t>(size);
        else
            value_size_ = static_cast<std::uint16_t>(size);
    }

    // The collection of a hash or a sorted set.
    void* collection() const noexcept {
        void* address = nullptr;
        std::memcpy(&address, value().data(), sizeof address);
        return address;
    }

    std::size_t bytes() const noexcept {
        return sizeof(record) + optional_bytes(kind_and_flags_) + key_size() + capacity();
    }

    // A new object. `expiry` < 0: none. `capacity`: room for the value, at least its size; more only
    // for large values. Throws std::bad_alloc.
    static record* make(record_kind kind, std::string_view key, std::string_view value,
                        std::int64_t expiry = -1, std::size_t capacity = 0) {
        record* made = make_unset(kind, key, value.size(), expiry, capacity);
        if (!value.empty()) std::memcpy(made->value_data(), value.data(), value.size());
        return made;
    }
    // The same with a value that the caller fills in.
    static record* make_unset(record_kind kind, std::string_view key, std::size_t value_size,
                              std::int64_t expiry = -1, std::size_t capacity = 0) {
        capacity = std::max(capacity, value_size);
        auto flags = static_cast<std::uint8_t>(kind);
        if (expiry >= 0) flags |= expiry_flag;
        const bool large = kind == record_kind::string && capacity >= large_value;
        if (large) flags |= extension_flag;
        if (large || key.size() > UINT8_MAX || value_size > UINT16_MAX) flags |= wide_flag;
        if (!large) capacity = value_size;
        void* memory =
            allocate_managed(sizeof(record) + optional_bytes(flags) + key.size() + capacity);
        auto* made = ::new (memory) record(flags);
        if (made->is_wide()) {
            made->wide()[0] = static_cast<std::uint32_t>(value_size);
            made->wide()[1] = static_cast<std::uint32_t>(key.size());
        } else {
            made->key_size_ = static_cast<std::uint8_t>(key.size());
            made->value_size_ = static_cast<std::uint16_t>(value_size);
        }
        if (large) {
            made->wide()[2] = static_cast<std::uint32_t>(capacity);
            made->wide()[3] = 0;
        }
        if (expiry >= 0) made->set_expiry(expiry);
        if (!key.empty()) std::memcpy(const_cast<char*>(made->key_place()), key.data(), key.size());
        return made;
    }
    static record* make_collection(record_kind kind, std::string_view key, void* collection,
                                   std::int64_t expiry = -1) {
        return make(kind, key, {reinterpret_cast<const char*>(&collection), sizeof collection},
                    expiry);
    }
    // Frees an object that is in no slot any more, a large one when it is sent.
    static void destroy(record* r) noexcept {
        if (r->is_large())
            retire_managed(r);
        else
            free_managed(r);
    }

    // The same of one that is a field or a member. It is not read: what is cold stays where it is.
    static void destroy_part(record* r) noexcept { free_managed(r); }

  private:
    static constexpr std::uint8_t expiry_flag = 16, wide_flag = 32, extension_flag = 64;

    explicit record(std::uint8_t kind_and_flags) noexcept : kind_and_flags_(kind_and_flags) {}

    static constexpr std::size_t optional_bytes(std::uint8_t flags) noexcept {
        return ((flags & expiry_flag) != 0 ? 8u : 0u) + ((flags & wide_flag) != 0 ? 8u : 0u) +
               ((flags & extension_flag) != 0 ? 8u : 0u);
    }
    bool is_wide() const noexcept { return (kind_and_flags_ & wide_flag) != 0; }
    // Value size, key size; and of the extension, capacity and sends. Precondition: they are there.
    std::uint32_t* wide() noexcept { return reinterpret_cast<std::uint32_t*>(this) + 1; }
    const std::uint32_t* wide() const noexcept {
        return reinterpret_cast<const std::uint32_t*>(this) + 1;
    }
    std::size_t key_size() const noexcept { return is_wide() ? wide()[1] : key_size_; }
    const char* key_place() const noexcept {
        return reinterpret_cast<const char*>(this) + sizeof(record) +
               optional_bytes(kind_and_flags_);
    }
    const char* expiry_place() const noexcept { return key_place() - 8; }

    std::uint8_t kind_and_flags_; // record_kind in the low four bits
    std::uint8_t key_size_ = 0;   // these two where the sizes are not wide
    std::uint16_t value_size_ = 0;
};

static_assert(sizeof(record) == 4);

} // namespace crestdb::server
