// SPDX-License-Identifier: MIT
//
// Which keys and values hash_map and lru_cache take, and how they are kept.
//
// Text (std::string, std::string_view, obase::string, obase::bytes) comes in as std::string_view, goes
// out as std::string, and is kept as obase::bytes: one managed object with its length. Any other
// value is kept as a managed object of its type, which must be relocatable; it is never changed in
// place, so readers share it. A key that is not text is kept as its bytes: trivially copyable, and
// equal only if the bytes are.
#pragma once

#include <obase/language.hpp>

#include <obase/bytes.hpp>
#include <obase/owner.hpp>
#include <obase/relocatable.hpp>
#include <obase/string.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace obase::containers {

template <class T>
concept text = std::same_as<T, std::string> || std::same_as<T, std::string_view> ||
               std::same_as<T, obase::string> || std::same_as<T, obase::bytes>;

// How a key is passed, and its bytes.
template <class K>
struct key {
    static_assert(std::is_trivially_copyable_v<K> && std::has_unique_object_representations_v<K>,
                  "a key is text, or a type that is equal exactly if its bytes are: trivially "
                  "copyable, without padding, no floating point number "
                  "(std::has_unique_object_representations)");
    using argument = const K&;
    static std::string_view bytes(argument k) noexcept {
        return {reinterpret_cast<const char*>(std::addressof(k)), sizeof k};
    }
};
template <text K>
struct key<K> {
    using argument = std::string_view;
    static std::string_view bytes(argument k) noexcept { return k; }
};

// How a value is passed, kept, shown and copied.
template <class V>
struct value {
    static_assert(std::is_object_v<V> && !std::is_const_v<V>,
                  "a value is an object type, not const");
    using argument = V;
    using kept = V;
    using copy = V;
    static const V& shown(const kept& v) noexcept { return v; }
    static std::size_t bytes(const V&) noexcept { return sizeof(V); }
    template <class Protocol>
    static owner<kept, Protocol> make(V&& v) {
        return make_managed<V, Protocol>(std::move(v));
    }
};
template <text V>
struct value<V> {
    using argument = std::string_view;
    using kept = obase::bytes;
    using copy = std::string;
    static std::string_view shown(const kept& v) noexcept { return v.view(); }
    static std::size_t bytes(std::string_view v) noexcept { return sizeof(kept) + v.size(); }
    template <class Protocol>
    static owner<kept, Protocol> make(std::string_view v) {
        return make_bytes<Protocol>(v);
    }
};

} // namespace obase::containers
