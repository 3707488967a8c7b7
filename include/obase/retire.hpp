// SPDX-License-Identifier: MIT
//
// obase::retire: destroys an object when no thread can be using it any more.
//
// Epoch-based deferred reclamation on the epochs of the scopes. An object taken out of a structure
// that others read without locks is retired instead of reset; it is destroyed after every scope
// that is open now has ended, and while no pin holds it.
//
//     obase::retire(e.value.exchange(obase::make_bytes("new")));   // readers of the old one finish
//
// Where the structure's locks already keep readers out, reset() is simpler.
//
// Threads: any. The destructor runs later, in a thread that retires, at the end of a thread that has
// retired (after its thread_local objects have ended), or in the collector, outside of every lock of
// obase and after the caller's outermost scope: it must not take locks that may be held there. A
// scope that stays open keeps everything retired after it alive. Before a library is unloaded whose
// destructors may be pending: runtime::drain(). docs/embedding.md has the details.
//
// Cost: an allocation of 40 bytes and a compare-exchange; after every 32 objects or 128 KiB at most
// 128 destructors of what any thread has retired; one epoch advance per thousand objects or 4 MiB.
// Without memory for these 40 bytes, outside of scopes what can be freed is freed first; otherwise
// the object is never destroyed, and one message says so.
#pragma once

#include <obase/language.hpp>

#include <obase/guide.hpp>
#include <obase/owner.hpp>

#include <type_traits>
#include <utility>

namespace obase {

template <class T, class Protocol>
void retire(owner<T, Protocol>&& taken) noexcept {
    auto* object = const_cast<std::remove_cv_t<T>*>(taken.get());
    if (object == nullptr) return;
    taken.release_word();
    Protocol::retire(object, &owner<T, Protocol>::destroy, Protocol::usable_size(object));
}

template <class T, class Protocol>
void retire(guide<T, Protocol>&& taken) noexcept {
    retire(taken.release());
}

} // namespace obase
