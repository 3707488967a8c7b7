// SPDX-License-Identifier: MIT
//
// What differs between marked pointers on arming and on ATC: the `Kind` of marked_pointers, but for
// what belongs to a place (the engine, the state). marked.cpp and marked_atc.cpp complete them for the
// library, marked_obligations_test.cpp for the deterministic scheduler.
//
// Why either is safe although an object may be in two slots for a moment: docs/protocol.md and
// docs/atc.md, Marked pointers.
#pragma once

#include <obase/word/arming.hpp>
#include <obase/word/atc.hpp>

namespace obase::runtime_internal {

template <class Protocol>
struct marked_on_arming {
    using protocol = Protocol;
    using slot = typename protocol::slot;
    using bits = word::bits;
    using layout = word::arming;

    static void hold(slot&) noexcept {} // each batch waits
    static void put(slot& s, bits word) noexcept { s.store_release(word); }
    static bits take(slot& s, bits word) noexcept { return s.exchange_seq_cst(word); }
    // Only the collector arms (R3).
    static bits owned(bits word) noexcept {
        return layout::is_armed(word) ? layout::make_aged(word) : word;
    }
    static void began(const void*) noexcept {}
    static void ends() noexcept {}
    static void left_by_jump(const void*) noexcept {}
    static void slot_made(const slot&, const void*) noexcept {}
    static void slot_moved(const slot&, const slot&) noexcept {}
    static void retired(const void*, const void*) noexcept {}
    static void ended(void*, std::size_t) noexcept {}
};

// No store is a plain one, of null either: it would take away the counts of those who are inside the
// slot, and they rely on them for what the slot holds next.
template <class Protocol>
struct marked_on_atc {
    using protocol = Protocol;
    using slot = typename protocol::slot;
    using bits = word::bits;

    static void hold(slot& s) noexcept { word::count_in_forever(s); }
    static void put(slot& s, bits word) noexcept { protocol::exchange(s, word); }
    static bits take(slot& s, bits word) noexcept { return protocol::exchange(s, word); }
    static bits owned(bits word) noexcept { return word::atc::leaving(word); }
    static void began(const void*) noexcept {}
    static void ends() noexcept {}
    static void left_by_jump(const void*) noexcept {}
    static void slot_made(const slot&, const void*) noexcept {}
    static void slot_moved(const slot&, const slot&) noexcept {}
    static void retired(const void*, const void*) noexcept {}
    static void ended(void*, std::size_t) noexcept {}
};

} // namespace obase::runtime_internal
