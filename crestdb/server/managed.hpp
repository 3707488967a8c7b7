// SPDX-License-Identifier: MIT
//
// What the server needs of obase: slots whose protocol is chosen when the process starts.
//
// The library's guides take their protocol as a template argument. A server that offers three of them
// (`--protocol none|arming|atc`) would be compiled three times; here the choice is one variable, set
// before the first object exists, and every operation is one predictable branch before the
// protocol's own. The slots of all protocols have the same type, an atomic word.
//
// The rules are those of guides (obase/guide.hpp): an address from get() is good until the scope ends;
// a slot is the only pointer to its object. In addition every slot here is guarded by the lock of
// the part of the keyspace it belongs to, so two threads of the server never use one slot at once;
// only the collector does.
//
// Threads: as guides. Errors: allocate() throws std::bad_alloc, the rest nothing.
#pragma once

#include <obase/arming.hpp>
#include <obase/atc.hpp>
#include <obase/plain.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace crestdb::server {

// `still`: in the child of a fork, where nothing moves and nothing is written: slots are read without
// an access, so that the child does not copy the pages they are on.
enum class managing : std::uint8_t { none, arming, atc, still };

// Written once by main(), before the first object is made.
inline managing managed_by = managing::arming;

// Calls f with the protocol that was chosen.
template <class Function>
decltype(auto) with_protocol(Function&& f) {
    if (managed_by == managing::arming) [[likely]]
        return f.template operator()<obase::arming>();
    if (managed_by == managing::atc) return f.template operator()<obase::atc>();
    return f.template operator()<obase::plain>();
}

// The extent of one operation on the keyspace; see obase/scope.hpp.
class managed_scope {
  public:
    managed_scope() noexcept
        : outer_(with_protocol([]<class Protocol>() { return Protocol::enter(); })) {}
    ~managed_scope() {
        with_protocol([this]<class Protocol>() { Protocol::leave(outer_); });
    }
    managed_scope(const managed_scope&) = delete;
    managed_scope& operator=(const managed_scope&) = delete;

  private:
    std::uint64_t outer_;
};

inline void* allocate_managed(std::size_t bytes) {
    void* const memory = with_protocol(
        [&]<class Protocol>() { return Protocol::allocate(bytes, {.alignment = 8}); });
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

// Bytes that the object takes, wherever it is moved to. It is not read.
inline std::size_t managed_size(const void* object) noexcept {
    return with_protocol([&]<class Protocol>() { return Protocol::usable_size(object); });
}

inline void free_managed(void* object) noexcept {
    with_protocol([&]<class Protocol>() { Protocol::deallocate(object); });
}

// Frees the object when no pin names it any more.
inline void retire_managed(void* object) noexcept {
    with_protocol([&]<class Protocol>() {
        Protocol::retire(
            object, +[](void* o) noexcept { Protocol::deallocate(o); },
            Protocol::usable_size(object));
    });
}

// The runtime of the protocol; that of arming for `none`, whose epochs free what was retired.
inline obase::runtime& managing_runtime() noexcept {
    return managed_by == managing::atc ? obase::atc::runtime_of() : obase::arming::runtime_of();
}

// Keeps an object where it is beyond the scope, and from being freed after retire_managed().
class managed_pin {
  public:
    // `object`: an address from a slot, obtained in the scope that is open. Throws std::bad_alloc.
    explicit managed_pin(void* object)
        : entry_(with_protocol([&]<class Protocol>() { return Protocol::pin(object); })) {
        if (entry_ == nullptr) throw std::bad_alloc();
    }
    managed_pin(managed_pin&& other) noexcept : entry_(other.entry_) { other.entry_ = nullptr; }
    managed_pin& operator=(managed_pin&& other) noexcept {
        if (this != &other) {
            release();
            entry_ = other.entry_;
            other.entry_ = nullptr;
        }
        return *this;
    }
    ~managed_pin() { release(); }

  private:
    void release() noexcept {
        if (entry_ != nullptr) with_protocol([this]<class Protocol>() { Protocol::unpin(entry_); });
        entry_ = nullptr;
    }
    obase::arming::pin_entry* entry_;
};

// A slot without constructor and destructor, for tables whose places are memory until they are used.
class managed_slot {
  public:
    // Makes this memory a slot that owns `object`, which no slot has held yet.
    void begin(void* object) noexcept {
        with_protocol(
            [&]<class Protocol>() { Protocol::construct(word_, Protocol::newborn(object)); });
    }
    // Ends the slot; the object is the caller's.
    void* end() noexcept {
        return with_protocol([&]<class Protocol>() { return Protocol::destroy(word_); });
    }
    // Makes this memory a slot that takes over `from`, which ends. No access; the object stays as old as it was.
    void begin_from(managed_slot& from) noexcept {
        with_protocol([&]<class Protocol>() {
            const obase::word::bits word = Protocol::exchange(from.word_, 0);
            Protocol::destroy(from.word_);
            Protocol::construct(word_, word);
        });
    }
    // Puts a new object in and returns the old one.
    void* exchange(void* object) noexcept {
        return with_protocol([&]<class Protocol>() {
            return Protocol::address(Protocol::exchange(word_, Protocol::newborn(object)));
        });
    }
    // The object. Counts as an access; in a scope.
    void* get() noexcept {
        if (managed_by == managing::still) [[unlikely]]
            return reinterpret_cast<void*>(word_.load_acquire() &
                                           obase::word::arming::address_mask);
        return with_protocol([&]<class Protocol>() { return Protocol::dereference(word_); });
    }
    // Where the object lies, for telling its heap. No access; not to be dereferenced.
    const void* peek() const noexcept {
        return with_protocol([&]<class Protocol>() { return Protocol::peek(word_); });
    }
    // Windows since the object was last used, as the collector knows it: 0 for one that was used in
    // this window or that it has not seen yet. `window`: statistics().windows. Under `none`
    // nothing is tracked, and all are 0.
    unsigned idle_windows(std::uint64_t window) const noexcept {
        const obase::word::bits word = word_.load_relaxed();
        if (managed_by == managing::arming) {
            if (!obase::word::arming::is_armed(word) && !obase::word::arming::is_aged(word))
                return 0;
            return obase::word::arming::age(word, window) + 1;
        }
        if (managed_by == managing::atc) return obase::word::atc::inactive_windows(word);
        return 0;
    }

  private:
    obase::arming::slot word_;
};

static_assert(sizeof(managed_slot) == 8);
static_assert(obase::word::arming::address_mask == obase::word::atc::address_mask,
              "`still` reads the slots of both");

} // namespace crestdb::server
