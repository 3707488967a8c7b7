// SPDX-License-Identifier: MIT
//
// obase::bytes: an immutable-length byte string that is one managed object, length and contents.
//
//     obase::guide<obase::bytes> value = obase::make_bytes("some text");
//     { obase::scope s; std::string_view text = *value; }
//
// The length is fixed; obase::string is for text that changes its length in place.
#pragma once

#include <obase/language.hpp>

#include <obase/errors.hpp>
#include <obase/owner.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace obase {

class bytes {
  public:
    // At most 2^32 - 1.
    std::size_t size() const noexcept { return size_; }
    char* data() noexcept { return reinterpret_cast<char*>(this) + sizeof *this; }
    const char* data() const noexcept { return reinterpret_cast<const char*>(this) + sizeof *this; }
    std::string_view view() const noexcept { return {data(), size()}; }
    operator std::string_view() const noexcept { return view(); }
    friend bool operator==(const bytes& a, std::string_view b) noexcept { return a.view() == b; }

    bytes(const bytes&) = delete;
    bytes& operator=(const bytes&) = delete;

    // For make_bytes(): `memory` has room for the header and the contents.
    static bytes* construct(void* memory, std::string_view contents) noexcept {
        bytes* object = ::new (memory) bytes(static_cast<std::uint32_t>(contents.size()));
        if (!contents.empty()) std::memcpy(object->data(), contents.data(), contents.size());
        return object;
    }

  private:
    explicit bytes(std::uint32_t size) noexcept : size_(size) {}

    std::uint32_t size_;
};

static_assert(sizeof(bytes) == 4);
template <>
struct is_relocatable<bytes> : std::true_type {};

// A copy of `contents`. Throws std::bad_alloc; also for contents of 4 GiB and more.
template <class Protocol = arming>
owner<bytes, Protocol> make_bytes(std::string_view contents, allocation_options how = {}) {
    if (contents.size() > UINT32_MAX) errors::out_of_memory();
    how.alignment = std::max(how.alignment, alignof(bytes));
    how.guided = true;
    const std::size_t size = sizeof(bytes) + contents.size();
    if (how.extra_bytes > SIZE_MAX - size) errors::out_of_memory();
    void* memory = Protocol::allocate(size + how.extra_bytes, how);
    if (memory == nullptr) errors::out_of_memory();
    return owner<bytes, Protocol>::adopt_newborn(bytes::construct(memory, contents));
}

} // namespace obase
