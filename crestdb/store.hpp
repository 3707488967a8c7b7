// SPDX-License-Identifier: MIT
//
// crestdb::store: an embedded, concurrent key-value store in memory; CrestDB of OBASE 5.
//
// One of CrestDB's indexes under one of the protocols, both chosen at run time. Keys and values are
// byte strings, which the store copies. With the protocols `arming` and `atc` the copies are
// managed objects that obase moves while the store is used; with `none` they are plain pointers to
// memory of malloc.
//
//     const auto db = crestdb::store::open({.value_bytes = 100});
//     db->put("key", "value");
//     db->get("key", [](std::string_view value) { std::puts(std::string(value).c_str()); });
//
// Where the index and the protocol are known at compile time, the index classes (crestdb/index.hpp)
// have the same operations without a virtual call. Nothing is persistent: data are in memory, or in
// an unnamed file that serves as memory (option cold_backing).
//
// Threads: all operations by any thread; opening and destruction by one. Costs: those of the index
// (docs of each), and a virtual call. Functions that are called back may use the store, and should be
// short (crestdb/index.hpp).
//
// Failures: std::bad_alloc when there is no memory; the store is then what it was.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace obase {
class runtime;
}

namespace crestdb {

// A reference to a callable, for the duration of a call.
template <class Signature>
class callback;
template <class Result, class... Arguments>
class callback<Result(Arguments...)> {
  public:
    template <class Function>
        requires(!std::is_same_v<std::remove_cvref_t<Function>, callback>)
    callback(Function&& f) noexcept
        : context_(const_cast<void*>(static_cast<const void*>(&f))),
          call_([](void* context, Arguments... arguments) -> Result {
              static_assert(
                  !std::is_same_v<Result, std::string_view> ||
                      !std::is_same_v<std::invoke_result_t<Function&, Arguments...>, std::string>,
                  "a view of a string that ends before it is looked at: return a view");
              return (*static_cast<std::remove_reference_t<Function>*>(context))(
                  std::forward<Arguments>(arguments)...);
          }) {}
    Result operator()(Arguments... arguments) const {
        return call_(context_, std::forward<Arguments>(arguments)...);
    }

  private:
    void* context_;
    Result (*call_)(void*, Arguments...);
};

struct store_options {
    std::string index{};             // one of store::indexes(); "": usual_index(value_bytes)
    std::string protocol = "arming"; // "none", "arming" or "atc"
    // About how many keys there will be. Hash tables take their size from it.
    std::size_t expected_keys = 65'536;
    // About how large a value is.
    std::size_t value_bytes = 1024;
};

class store {
  public:
    // Throws std::invalid_argument, naming what was given and what there is, for an unknown index
    // or protocol.
    static std::unique_ptr<store> open(const store_options& options);
    // The runtime that serves stores under a protocol, to be configured before the first of them is
    // opened. For `none` the one of arming, of which only the epochs of deferred frees are used.
    // Throws std::invalid_argument as open().
    static obase::runtime& runtime_of(std::string_view protocol);
    static std::vector<std::string> indexes();
    // The index for values of about that size, where the order of keys does not matter. Below
    // small_value_bytes a fifth of the memory or more would be nodes: they should move, too.
    static std::string usual_index(std::size_t value_bytes);
    static constexpr std::size_t small_value_bytes = 256;
    static std::vector<std::string> protocols();
    // True if scan() works with that index. False for an unknown one.
    static bool ordered(std::string_view index);

    virtual ~store() = default;
    store(const store&) = delete;
    store& operator=(const store&) = delete;

    // Calls use(value) and returns true if the key is there. The view is good during the call.
    virtual bool get(std::string_view key, callback<void(std::string_view)> use) const = 0;
    // Like get(), without touching the value.
    virtual bool contains(std::string_view key) const = 0;
    // Inserts, or replaces the value by a new object. True: the key is new.
    virtual bool put(std::string_view key, std::string_view value) = 0;
    // Replaces the value by a new object if the key is there. True: it was.
    virtual bool update(std::string_view key, std::string_view value) = 0;
    // Atomic read-modify-write: make(old) returns the new value, which is copied. make may be
    // called more than once. True: the key was there.
    virtual bool modify(std::string_view key,
                        callback<std::string_view(std::string_view)> make) = 0;
    // Changes the value where it lies. Not atomic: a concurrent reader of the key may see some of
    // the old and some of the new bytes. True: the key was there.
    virtual bool edit_in_place(std::string_view key, callback<void(std::span<char>)> edit) = 0;
    // True: the key was there.
    virtual bool erase(std::string_view key) = 0;
    // Calls use(key, value) for up to `limit` pairs from `from` on, in the order of the keys as
    // unsigned bytes; returns how many. Each pair was there at some moment of the scan, and no key
    // that was there all the time is left out. Throws std::logic_error if the index has no order.
    virtual std::size_t scan(std::string_view from, std::size_t limit,
                             callback<void(std::string_view, std::string_view)> use) const = 0;
    // For measuring: calls visit(object, bytes) for every managed object that a get(key)
    // dereferences, nodes included where they are managed. An access, as get() is.
    virtual void visit_path(std::string_view key,
                            callback<void(const void*, std::size_t)> visit) const = 0;

    // Exact while no thread writes.
    virtual std::size_t size() const noexcept = 0;
    // Bytes of the index itself: everything but the key and value objects.
    virtual std::size_t index_bytes() const noexcept = 0;
    // Nodes that are managed objects and move as keys and values do; 0 where nodes do not move.
    virtual std::size_t managed_nodes() const noexcept = 0;
    // The runtime that moves this store's objects; null for the protocol `none`.
    virtual obase::runtime* runtime() const noexcept = 0;

  protected:
    store() = default;
};

} // namespace crestdb
