// SPDX-License-Identifier: MIT
//
// What a record's objects take in the heap that they lie in.
#pragma once

#include "crestdb/store.hpp"

#include <cstdint>
#include <string_view>

namespace obase::tools {

struct object_sizes { // bytes, multiples of 8
    std::uint64_t key = 0;
    std::uint64_t value = 0;
    std::uint64_t both() const noexcept { return key + value; }
};

// Of a record's two objects. The key object ends with the key's text, the value object holds what get()
// shows; anything else on the path is a node. Zeros for a record that is not there, or whose key and value
// the store keeps elsewhere. Cost: two searches, which are accesses.
object_sizes sizes_of(const crestdb::store& store, std::string_view key);

} // namespace obase::tools
