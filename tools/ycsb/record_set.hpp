// SPDX-License-Identifier: MIT
//
// record_set: the keys and values of a benchmark, by record number. What a record's key is never
// changes; its value is a function of the record and a version, so that one can tell from a value
// which write it came from.
//
// Threads: all functions by any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace obase::tools {

class record_set {
  public:
    virtual ~record_set() = default;
    // How many there are before the first insert.
    virtual std::uint64_t count() const noexcept = 0;
    // Of any key and value, for buffers.
    virtual std::size_t largest_key() const noexcept = 0;
    virtual std::size_t largest_value() const noexcept = 0;

    // The key, in `buffer` (of largest_key() bytes) or elsewhere.
    virtual std::string_view key(std::uint64_t record, std::span<char> buffer) const = 0;
    // The value of that version, in `buffer` (of largest_value() bytes) or elsewhere. `size` 0: the
    // usual one of the record.
    virtual std::string_view value(std::uint64_t record, std::uint64_t version, std::size_t size,
                                   std::span<char> buffer) const = 0;
    // The version of a value that was read, whole as it was written; nothing if it is none of this
    // record. A value too short to carry a version answers any_version.
    virtual std::optional<std::uint64_t> check(std::uint64_t record,
                                               std::string_view value) const = 0;
    static constexpr std::uint64_t any_version = 0;
    // The store holds all records. What only filling needed may go, so that it does not count as
    // memory in use; value() is not called any more unless requests write.
    virtual void forget_source() {}
    // Of memory, which forget_source() frees.
    virtual std::size_t source_bytes() const { return 0; }
};

} // namespace obase::tools
