// SPDX-License-Identifier: MIT
//
// version_lock: a lock and a counter in one word, for nodes that are read without locking them
// (optimistic lock coupling: Leis, Scheibner, Kemper, Neumann, The ART of Practical Synchronization,
// DaMoN 2016; validation instead of read locks also in Bronson et al., PPoPP 2010).
//
//    63 ........................... 1     0
//   +---------------------------------+--------+
//   |             counter             | locked |
//   +---------------------------------+--------+
//
//     const auto seen = lock.read();              // waits while it is held
//     ... load what it guards, with load_acquire ...
//     if (!lock.unchanged(seen)) start_again();   // only now may what was loaded be believed
//     if (!lock.lock_if(seen)) start_again();     // or: what was loaded is still true, and stays so
//     ... store_release ...
//     lock.unlock();
//
// Readers write nothing, so a word that many threads read stays in all their caches.
//
// What a reader loads while a holder is at work may be any mixture of old and new. So: every field
// is an atomic; a mixture must not lead out of the node; nothing of it is used before unchanged() or
// lock_if() has said yes.
//
// Why unchanged() is right, by the letter of the language and without a fence: suppose a reader
// loads, with acquire, something that a holder stored, with release. The holder's lock_if() comes
// before that store, so it happens before the reader's unchanged(), which then loads that locked
// word or a later one and says no. Thus guarded data are always loaded with load_acquire and stored
// with store_release (or by a read-modify-write that is both, as the exchange of a guide). On x86-64
// these are ordinary moves.
//
// There is no mark for nodes that have left the structure: a thread that reaches one through its
// former parent fails unchanged() on the parent, which was locked when the node was taken out.
//
// The data must be safe to read while they change, and readers must be able to start again.
//
// `Atomic` is a 64-bit atomic with native_atomic's members, `Wait` has wait(unsigned attempt): both
// replaced under the deterministic scheduler.
#pragma once

#include <cstdint>

namespace crestdb {

template <class Atomic, class Wait>
class version_lock {
  public:
    using version = std::uint64_t;

    // The version; no holder at that moment. Order: acquire, pairs with unlock().
    version read() const noexcept {
        version seen = word_.load_acquire();
        for (unsigned attempt = 0; (seen & locked) != 0; seen = word_.load_acquire())
            Wait::wait(attempt++);
        return seen;
    }
    // The lock is free, and nothing was stored under it since read() returned `seen`
    // (unlock_unchanged() leaves the version as it was). Order: see above.
    bool unchanged(version seen) const noexcept { return word_.load_acquire() == seen; }

    // unlocked, `seen` -> locked: holds the lock if unchanged(seen). Never waits, so locks
    // may be taken in any order.
    bool lock_if(version seen) noexcept { return word_.cas_acq_rel(seen, seen | locked); }
    // locked -> unlocked, next version. Order: release, pairs with read() and lock_if().
    void unlock() noexcept { word_.store_release(word_.load_relaxed() + locked); }
    // locked -> unlocked, the version from before: the holder has stored nothing, and readers need
    // not notice.
    void unlock_unchanged() noexcept { word_.store_release(word_.load_relaxed() - locked); }

  private:
    static constexpr version locked = 1;

    Atomic word_;
};

} // namespace crestdb
