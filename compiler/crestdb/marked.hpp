// SPDX-License-Identifier: MIT
//
// crestdb::marked: CrestDB's indexes as plain C++ with marked pointers, for the compiler passes.
//
// A fourth protocol for the index templates, beside plain, arming and atc. A guide is a plain
// atomic pointer with a mark, an owner a plain pointer, memory is that of malloc and free, and a
// scope is nothing: which pointers are slots, what is managed and where operations begin and end is
// what the passes make of it. Nothing of obase but obase/marked.h is used for that.
//
// Nodes are not marked, as they do not move: their links have bits of the indexes' own in them. An
// index frees nodes by the deferred frees of obase, as it does under every protocol.
//
// CRESTDB_ATC: the passes are told --obase-protocol=atc, so what is done here by hand is atc's, too.
//
// CRESTDB_UNMARKED makes the program for plain compilers of the same source, to be compared with: the
// marks mean nothing then, so it brings scopes of its own and defers the frees of values as well.
//
// To be included before the index: it specializes obase::guide and others for this protocol.
//
// It stands for a user's plain program, and is used by these tests only.
#pragma once

#include <obase/arming.hpp>
#include <obase/atc.hpp>
#include <obase/bytes.hpp>
#include <obase/guide.hpp>
#include <obase/marked.h>
#include <obase/owner.hpp>
#include <obase/retire.hpp>
#include <obase/word/atomic.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <malloc.h>
#include <new>
#include <string_view>
#include <utility>

namespace crestdb {

struct marked {
    using slot = obase::word::native_atomic<obase::word::bits>; // of links between nodes
    static constexpr bool moves_objects = false;                // by itself

    // Of the runtime that the passes' code calls.
#if defined(CRESTDB_ATC)
    using beneath = obase::atc;
#else
    using beneath = obase::arming;
#endif

#if defined(CRESTDB_UNMARKED)
    static constexpr const char* name = "none";
    using scope = beneath::scope;
#else
    // The conformance suite knows by it whose objects move.
    static constexpr const char* name = beneath::name;
    struct scope {
        scope() noexcept {}
        ~scope() {} // not trivial, so that an unused one is no warning
    };
#endif

    // For nodes. What is marked is deleted: the passes' free waits for readers.
    static void retire(void* object, void (*destroy)(void*) noexcept, std::size_t bytes) noexcept {
        beneath::retire(object, destroy, bytes);
    }
};

} // namespace crestdb

namespace obase {

// A plain pointer to an object of malloc.
template <class T>
class owner<T, crestdb::marked> {
  public:
    using element_type = T;
    using protocol = crestdb::marked;

    constexpr owner() noexcept = default;
    constexpr owner(std::nullptr_t) noexcept {}
    explicit owner(T* object) noexcept : object_(object) {}
    owner(owner&& other) noexcept : object_(other.release_word()) {}
    owner& operator=(owner&& other) noexcept {
        if (this != &other) {
            T* taken = other.release_word();
            reset();
            object_ = taken;
        }
        return *this;
    }
    ~owner() { reset(); }

    T* get() const noexcept { return object_; }
    T* operator->() const noexcept { return object_; }
    T& operator*() const noexcept { return *object_; }
    explicit operator bool() const noexcept { return object_ != nullptr; }
    void reset() noexcept {
        if (T* object = release_word(); object != nullptr) destroy(object);
    }
    T* release_word() noexcept { return std::exchange(object_, nullptr); }
    static void destroy(void* object) noexcept {
        static_cast<T*>(object)->~T();
        std::free(object);
    }

  private:
    T* object_ = nullptr;
};

// The marked pointer.
template <class T>
class guide<T, crestdb::marked> {
  public:
    using element_type = T;
    using protocol = crestdb::marked;
    using owner_type = owner<T, crestdb::marked>;

    guide() noexcept : address_(nullptr) {}
    OBASE_INTERNAL guide(owner_type&& from) noexcept : address_(from.release_word()) {}
    guide(const guide&) = delete;
    ~guide() {
        if (T* object = address_.load(); object != nullptr) owner_type::destroy(object);
    }

    guide& operator=(const guide&) = delete;
    OBASE_INTERNAL guide& operator=(owner_type&& from) noexcept {
        owner_type old = exchange(std::move(from));
        return *this;
    }

    OBASE_INTERNAL T* get() const noexcept { return address_.load(); }
    OBASE_INTERNAL T* operator->() const noexcept { return address_.load(); }
    OBASE_INTERNAL T& operator*() const noexcept { return *address_.load(); }
    explicit operator bool() const noexcept { return address_.load() != nullptr; }
    friend bool operator==(const guide& g, std::nullptr_t) noexcept {
        return g.address_.load() == nullptr;
    }
    OBASE_INTERNAL const T* peek() const noexcept { return address_.load(); }
    OBASE_INTERNAL void prefetch() const noexcept { __builtin_prefetch(address_.load()); }

    OBASE_INTERNAL owner_type release() noexcept { return owner_type(address_.exchange(nullptr)); }
    OBASE_INTERNAL owner_type exchange(owner_type desired) noexcept {
        return owner_type(address_.exchange(desired.release_word()));
    }
    OBASE_INTERNAL bool compare_exchange(T*& expected, owner_type& desired) noexcept {
        T* seen = expected;
        if (address_.compare_exchange_strong(seen, desired.get())) {
            desired.release_word();
            desired = owner_type(seen);
            return true;
        }
        expected = seen;
        return false;
    }

  private:
    std::atomic<T*> address_ OBASE_GUIDED;
};

template <>
inline owner<bytes, crestdb::marked> make_bytes<crestdb::marked>(std::string_view contents,
                                                                 allocation_options) {
    if (contents.size() > UINT32_MAX) throw std::bad_alloc();
    void* memory = std::malloc(sizeof(bytes) + contents.size());
    if (memory == nullptr) throw std::bad_alloc();
    return owner<bytes, crestdb::marked>(bytes::construct(memory, contents));
}

template <class T>
void retire(owner<T, crestdb::marked>&& taken) noexcept {
#if defined(CRESTDB_UNMARKED)
    if (T* object = taken.release_word(); object != nullptr)
        crestdb::marked::beneath::retire(object, &owner<T, crestdb::marked>::destroy,
                                         malloc_usable_size(object));
#else
    taken.reset();
#endif
}

} // namespace obase
