// SPDX-License-Identifier: MIT
//
// crestdb::index: what every index of CrestDB offers, as a concept, and what each operation means.
//
//     static_assert(crestdb::index<crestdb::pugh_hash_table<obase::arming>>);
//     template <crestdb::index Index> void fill(Index& index);
//
// Types and constants
//   protocol, scope    obase::plain, obase::arming or obase::atc, and its scope
//   name               "pugh-hash-table", "fraser-skip-list", "occ-btree"
//   ordered            whether there is scan()
//   keys_inline        Only where a key need not be an object: nodes have its bytes.
//
// Operations (any thread, any time; each opens its own scope; a caller's scope may be around it)
//   X(expected_keys)          The number of keys the caller thinks there will be. No limit: there may
//                             be more. std::bad_alloc where a table of that size does not fit.
//   get(key, use)             use(std::string_view value) if the key is there. The view is good
//                             during the call. True: it was there.
//   contains(key)             Like get(), without touching the value.
//   put(key, value)           Inserts or replaces. The value is a new object, the old one is
//                             retired. True: the key is new. std::bad_alloc changes nothing.
//   update(key, value)        put() if the key is there. True: it was.
//   modify(key, make)         Atomic read-modify-write: make(std::string_view old) returns the new
//                             value (a std::string_view into the caller's memory or into `old`),
//                             and is called again if another writer was faster. True: the key was
//                             there. What make() throws, and std::bad_alloc, change nothing.
//   edit_in_place(key, edit)  edit(std::span<char> value) on the value object itself. NOT atomic:
//                             a concurrent reader of the key sees a mix, and an edit of a value
//                             that is being replaced is lost. Other keys are not affected. True:
//                             the key was there.
//   erase(key)                True: the key was there.
//   scan(from, limit, use)    Ordered indexes: use(std::string_view key, std::string_view value)
//                             for up to `limit` pairs with key >= from, keys ascending, none twice.
//                             Each pair was there at some moment of the scan; a key that was there
//                             during the whole scan is not missed, unless the limit was reached
//                             before it. Returns how many.
//   visit_path(key, visit)    visit(const void* object, std::size_t bytes) for every managed object
//                             that get(key) would dereference now: keys, values (bytes =
//                             sizeof(obase::bytes) + size) and, where nodes are managed objects,
//                             nodes (what was asked for). An object may be visited more than once.
//                             Dereferences them itself: it is the same search.
//   size()                    Keys. Exact while no thread writes.
//   index_bytes()             Memory of nodes, buckets, locks: all but key and value objects (and
//                             what malloc adds). Exact while no thread writes. Nodes count whether
//                             or not they are managed objects.
//   managed_nodes()           Only where nodes are managed objects: how many there are. Exact while
//                             no thread writes.
//
// use, make, edit and visit run inside the operation's scope: they should be short, and must not
// keep addresses. They may call the index. use and visit run under no lock of the index.
//
// What an operation replaces or erases is retired, which takes 32 bytes of malloc. If there are none
// the operation is done all the same, and what it took out is never freed (obase/retire.hpp).
//
// fork: a child may use an index if no thread wrote to it at the moment of the fork. Otherwise it
// may meet locks whose holders it does not have, and wait for ever.
//
// get, put, update, modify, erase and contains are linearizable; each header names its points, its
// progress guarantee and how it reclaims memory. Construction and destruction by one thread.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

namespace crestdb {

namespace detail {
struct any_use {
    void operator()(std::string_view) const {}
    void operator()(std::string_view, std::string_view) const {}
};
struct any_make {
    std::string_view operator()(std::string_view old) const { return old; }
};
struct any_edit {
    void operator()(std::span<char>) const {}
};
struct any_visit {
    void operator()(const void*, std::size_t) const {}
};
} // namespace detail

template <class X>
concept ordered_index = requires(const X& read, std::string_view key, std::size_t limit) {
    { read.scan(key, limit, detail::any_use{}) } -> std::same_as<std::size_t>;
};

template <class X>
concept index = std::constructible_from<X, std::size_t> && !std::copyable<X> &&
                requires(X& write, const X& read, std::string_view text) {
                    typename X::protocol;
                    typename X::scope;
                    { X::name } -> std::convertible_to<std::string_view>;
                    { X::ordered } -> std::convertible_to<bool>;
                    { read.get(text, detail::any_use{}) } -> std::same_as<bool>;
                    { read.contains(text) } -> std::same_as<bool>;
                    { write.put(text, text) } -> std::same_as<bool>;
                    { write.update(text, text) } -> std::same_as<bool>;
                    { write.modify(text, detail::any_make{}) } -> std::same_as<bool>;
                    { write.edit_in_place(text, detail::any_edit{}) } -> std::same_as<bool>;
                    { write.erase(text) } -> std::same_as<bool>;
                    { read.visit_path(text, detail::any_visit{}) } -> std::same_as<void>;
                    { read.size() } noexcept -> std::same_as<std::size_t>;
                    { read.index_bytes() } noexcept -> std::same_as<std::size_t>;
                } && ordered_index<X> == X::ordered;

} // namespace crestdb
