// SPDX-License-Identifier: MIT
#include "tools/ycsb/object_sizes.hpp"

#include <cstddef>
#include <cstring>

namespace obase::tools {

object_sizes sizes_of(const crestdb::store& store, std::string_view key) {
    std::uintptr_t shown = 0;
    store.get(key, [&](std::string_view value) {
        shown = reinterpret_cast<std::uintptr_t>(value.data());
    });
    object_sizes sizes;
    store.visit_path(key, [&](const void* object, std::size_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(object);
        const char* const text = static_cast<const char*>(object) + bytes - key.size();
        const std::uint64_t whole = (bytes + 7) & ~std::uint64_t{7};
        if (shown >= begin && shown < begin + bytes)
            sizes.value = whole;
        else if (bytes >= key.size() && std::memcmp(text, key.data(), key.size()) == 0)
            sizes.key = whole;
    });
    return sizes;
}

} // namespace obase::tools
