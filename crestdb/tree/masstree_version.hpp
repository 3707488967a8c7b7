// SPDX-License-Identifier: MIT
//
// masstree_version: the lock and the counters of a Masstree node in one word (Mao, Kohler, Morris,
// EuroSys 2012, figure 3).
//
//    63 ........ 40 39 ......... 6    5      4       3         2          1         0
//   +--------------+--------------+--------+------+---------+-----------+-----------+--------+
//   |    splits    |   inserts    | border | root | deleted | splitting | inserting | locked |
//   +--------------+--------------+--------+------+---------+-----------+-----------+--------+
//
//   locked     one thread may change the node; says nothing to readers
//   inserting  entries are being rearranged; readers wait, and one that began before looks again
//              here
//   splitting  what the node is responsible for, or whether it is a root, is being changed; readers
//              wait, and one that began before finds out anew which node is the right one
//   deleted    out of the tree, for ever
//   root       of its layer
//   border     a leaf; never changes
//
//     const auto seen = node.version.stable();        // waits for marks, not for the lock
//     ... load what it guards, with load_acquire ...
//     if (!node.version.unchanged(seen)) look_again();
//
//     node.version.lock();
//     node.version.mark_inserting();                  // before the first store that may mislead
//     ... store_release ...
//     node.version.unlock();                          // counts what was marked
//
// A change that is one store (an insertion into a border node that publishes its permutation) needs
// no mark: readers see the node before or after. That is why there are two bits where version_lock
// has one.
//
// Rule: a thread that has set a mark takes no further lock and allocates nothing until unlock(), so
// readers wait for some instructions, and a holder of locks may call stable() on any node.
//
// Why unchanged() is right without a fence: as in version_lock.hpp. Who loads, with acquire, what a
// holder stored, with release, after setting a mark, loads that mark or something later in
// unchanged(). Hence guarded fields are atomics that are loaded with load_acquire and stored with
// store_release.
//
// A counter that overflows into its neighbour makes a reader look again once too often. A reader
// that sleeps through exactly 2^34 inserts or 2^24 splits of a node is not told.
#pragma once

#include <cstdint>

namespace crestdb {

template <class Atomic, class Wait>
class masstree_version {
  public:
    // The result of stable(); the lock bit is not part of it.
    class snapshot {
      public:
        snapshot() noexcept = default;
        explicit snapshot(std::uint64_t bits) noexcept : bits_(bits & ~locked) {}
        bool is_deleted() const noexcept { return (bits_ & deleted) != 0; }
        bool is_root() const noexcept { return (bits_ & root) != 0; }
        bool is_border() const noexcept { return (bits_ & border) != 0; }
        bool operator==(const snapshot&) const noexcept = default;
        // The node's responsibility was changed between the two.
        bool split_since(snapshot earlier) const noexcept {
            return (bits_ ^ earlier.bits_) >= one_split;
        }

      private:
        std::uint64_t bits_ = 0;
    };

    // Held by its maker, who calls unlock() when the node may be found.
    masstree_version(bool is_border, bool is_root) noexcept
        : word_(locked | (is_border ? border : 0) | (is_root ? root : 0)) {}

    // Waits for marks. Order: acquire, pairs with unlock().
    snapshot stable() const noexcept {
        std::uint64_t seen = word_.load_acquire();
        for (unsigned attempt = 0; (seen & (inserting | splitting)) != 0;
             seen = word_.load_acquire())
            Wait::wait(attempt++);
        return snapshot(seen);
    }
    // No mark has been set since stable() returned `seen`. Order: see above.
    bool unchanged(snapshot seen) const noexcept { return snapshot(word_.load_acquire()) == seen; }

    // Order: acquire, pairs with unlock().
    void lock() noexcept {
        std::uint64_t seen = word_.load_relaxed();
        for (unsigned attempt = 0; (seen & locked) != 0 || !word_.cas_acq_rel(seen, seen | locked);
             seen = word_.load_relaxed())
            Wait::wait(attempt++);
    }

    // The rest by the holder of the lock.
    snapshot held() const noexcept { return snapshot(word_.load_relaxed()); }
    // Order: release, so that stores of before are visible with it; that what is stored afterwards,
    // with release, is not visible without it is what unchanged() needs.
    void mark_inserting() noexcept { set(inserting); }
    void mark_splitting() noexcept { set(splitting); }
    void mark_deleted() noexcept { set(splitting | deleted); }
    void set_root() noexcept { set(splitting | root); }
    void clear_root() noexcept { word_.store_release((word_.load_relaxed() | splitting) & ~root); }
    // Order: release, pairs with stable() and lock().
    void unlock() noexcept {
        std::uint64_t word = word_.load_relaxed();
        if ((word & inserting) != 0) word += one_insert;
        if ((word & splitting) != 0) word += one_split;
        word_.store_release(word & ~(locked | inserting | splitting));
    }

  private:
    static constexpr std::uint64_t locked = 1, inserting = 2, splitting = 4, deleted = 8, root = 16,
                                   border = 32;
    static constexpr std::uint64_t one_insert = 1 << 6, one_split = std::uint64_t{1} << 40;

    void set(std::uint64_t bits) noexcept { word_.store_release(word_.load_relaxed() | bits); }

    Atomic word_;
};

} // namespace crestdb
