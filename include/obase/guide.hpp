// SPDX-License-Identifier: MIT
//
// obase::guide<T>: a pointer whose object the runtime may move while the program runs.
//
// One 64-bit word, the unique owner of a managed object, used like std::unique_ptr in the nodes of
// a data structure. Dereferencing it tells the runtime that the object is in use; objects in use
// gather on common pages, the others on pages that the system can take away.
//
//     struct entry { std::uint64_t hash; obase::guide<obase::bytes> value; };
//
//     e.value = obase::make_bytes("some text");
//     {
//         obase::scope s;
//         write(fd, e.value->data(), e.value->size());
//     }
//
// Requirements: the guide is the only pointer to the object, and the address is kept nowhere else
// (R15).
//
// Rules: dereference inside a scope; an address from a guide is good until the outermost scope ends
// (O1). A null test, a comparison with nullptr and peek() do not count as accesses. A guide is born
// armed: storing a new object does not count as an access either. A guide registers its own
// address, so it must end by its destructor; memory with guides in it that is dropped in bulk needs
// forget_guides() first.
//
// Threads: get(), exchange(), compare_exchange() and load by any thread at any time, as
// std::atomic. Assignment, move, swap, reset and destruction need what std::unique_ptr needs, and
// free the object at once: where other threads may be reading it, use retire().
//
// Costs: docs/benchmarks.md. get() is a load and a test; the first access in a window adds a
// compare-exchange; construction and destruction cost an atomic read-modify-write each.
#pragma once

#include <obase/language.hpp>

#include <obase/arming.hpp>
#include <obase/conversion.hpp>
#include <obase/owner.hpp>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace obase {

template <class T, class Protocol = arming>
class guide {
  public:
    using element_type = T;
    using protocol = Protocol;
    using owner_type = owner<T, Protocol>;

    guide() noexcept { Protocol::construct(word_, 0); }
    guide(std::nullptr_t) noexcept : guide() {}
    guide(owner_type&& from) noexcept { Protocol::construct(word_, from.release_word()); }
    guide(guide&& from) noexcept { Protocol::construct(word_, from.release().release_word()); }
    // From an owner or a guide of T without const, or of a class derived from T
    // (obase/conversion.hpp).
    template <class From>
        requires conversion::wanted<T, From>
    guide(owner<From, Protocol>&& from) noexcept : guide(owner_type(std::move(from))) {}
    template <class From>
        requires conversion::wanted<T, From>
    guide(guide<From, Protocol>&& from) noexcept : guide(owner_type(from.release())) {}
    ~guide() {
        if (void* object = Protocol::destroy(word_); object != nullptr) owner_type::destroy(object);
    }

    guide& operator=(guide&& from) noexcept {
        if (this != &from) *this = from.release();
        return *this;
    }
    guide& operator=(owner_type&& from) noexcept {
        owner_type old = exchange(std::move(from));
        return *this;
    }
    template <class From>
        requires conversion::wanted<T, From>
    guide& operator=(owner<From, Protocol>&& from) noexcept {
        return *this = owner_type(std::move(from));
    }
    template <class From>
        requires conversion::wanted<T, From>
    guide& operator=(guide<From, Protocol>&& from) noexcept {
        return *this = owner_type(from.release());
    }
    guide& operator=(std::nullptr_t) noexcept {
        reset();
        return *this;
    }

    // The object's address, null if there is none. Counts as an access. Precondition: inside a
    // scope.
    T* get() const noexcept {
        check_scope();
        return static_cast<T*>(Protocol::dereference(word_));
    }
    T* operator->() const noexcept { return get(); }
    std::add_lvalue_reference_t<T> operator*() const noexcept { return *get(); }

    // No access.
    explicit operator bool() const noexcept { return peek() != nullptr; }
    friend bool operator==(const guide& g, std::nullptr_t) noexcept { return g.peek() == nullptr; }
    // The logical address, for comparing with addresses from get() in the same scope. Not to be
    // dereferenced: it does not count as an access and does not keep the object in place.
    const T* peek() const noexcept { return static_cast<const T*>(Protocol::peek(word_)); }

    // Takes the object out; the guide is null afterwards. The owner's object does not move.
    owner_type release() noexcept { return owner_type::restore(Protocol::exchange(word_, 0)); }
    // Destroys the object at once. No thread may still use it.
    void reset() noexcept { owner_type old = release(); }
    void swap(guide& other) noexcept {
        if (this == &other) return;
        typename Protocol::scope one_operation;
        owner_type mine = release();
        mine = other.exchange(std::move(mine));
        owner_type none = exchange(std::move(mine));
    }
    friend void swap(guide& a, guide& b) noexcept { a.swap(b); }

    // Lock-free: puts `desired` in and returns what was there. Readers may still use the old
    // object; pass it to retire().
    owner_type exchange(owner_type desired) noexcept {
        return owner_type::restore(Protocol::exchange(word_, desired.release_word()));
    }
    // Lock-free: if the guide refers to `expected` (an address from get() in this scope, or null),
    // puts `desired` in and returns true; `desired` then owns the former object. Otherwise leaves
    // `desired` alone, and `expected` becomes the current address, which counts as an access. Tag
    // bits are ignored. Precondition: inside a scope.
    bool compare_exchange(T*& expected, owner_type& desired) noexcept {
        check_scope();
        void* seen = const_cast<std::remove_cv_t<T>*>(expected);
        const word::bits replacement = desired.release_word();
        if (Protocol::compare_exchange(word_, seen, replacement)) {
            desired = owner_type::adopt(seen);
            return true;
        }
        expected = static_cast<T*>(seen);
        desired = owner_type::restore(replacement);
        return false;
    }

  private:
    static void check_scope() noexcept {
#if defined(OBASE_DEBUG_CHECKS)
        if (!Protocol::in_scope()) [[unlikely]] {
            std::fputs("obase: a guide was dereferenced outside of a scope (obase/scope.hpp)\n",
                       stderr);
            std::abort();
        }
#endif
    }

    // Mutable: an access changes what the runtime knows, not what the guide refers to.
    mutable typename Protocol::slot word_;
};

static_assert(sizeof(guide<int>) == 8);

template <class T, class Protocol>
struct is_relocatable<guide<T, Protocol>> : std::true_type {};

// Unregisters every guide in [begin, begin + bytes) without destroying or freeing anything: for
// arenas and mappings that are dropped as a whole. Afterwards the memory may be reused or unmapped.
template <class Protocol = arming>
void forget_guides(void* begin, std::size_t bytes) noexcept {
    Protocol::forget_range(begin, static_cast<char*>(begin) + bytes);
}

} // namespace obase
