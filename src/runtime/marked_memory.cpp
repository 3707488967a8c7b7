// SPDX-License-Identifier: MIT
//
// Memory that comes back from code which knows nothing of obase: the half of compiler/driver/memory_functions.c that
// is in the library.
#include "runtime/marked_memory.hpp"
#include "audit/audit.hpp"
#include "runtime/arming_engine.hpp"
#include "runtime/atc_engine.hpp"

#include <obase/marked.h>

#include <cstddef>

namespace obase::runtime_internal {

constinit thread_local const void* needs_no_wait = nullptr;

} // namespace obase::runtime_internal

namespace {

using obase::runtime_internal::arming_engine;
using obase::runtime_internal::atc_engine;
using obase::runtime_internal::needs_no_wait;

enum : int { nobody, of_arming, of_atc };

void tell_audit(int owner, const void* address, const void* caller) noexcept {
    if (owner == of_arming && obase::audit::on() && arming_engine::manages(address))
        obase::audit::auditor::running()->note(obase::audit::kind::foreign_free, address, caller);
}

} // namespace

// Where slots or traces could not be written down for want of memory, the passes' code lets all memory wait
// (marked_pointers.hpp). Here nothing waits for that reason: what obase itself frees comes this way, too, and some of it
// under locks that waiting takes.
int obase_memory_owner(const void* address, std::size_t (*usable_size)(void*)) {
    if (address == needs_no_wait) {
        needs_no_wait = nullptr;
        return nobody;
    }
    if (arming_engine::manages(address)) return of_arming;
    if (atc_engine::manages(address)) return of_atc;
    const bool arming = arming_engine::instance_if_any() != nullptr;
    const bool atc = atc_engine::instance_if_any() != nullptr;
    if ((!arming && !atc) || obase::os::asks_for_stack()) return nobody;
    const std::size_t bytes = usable_size(const_cast<void*>(address));
    if (arming && obase::runtime_internal::had_arming_slots(address, bytes)) return of_arming;
    return atc && obase::runtime_internal::had_atc_slots(address, bytes) ? of_atc : nobody;
}

void obase_memory_free(int owner, void* address, const void* caller) {
    tell_audit(owner, address, caller);
    if (owner == of_atc)
        obase_marked_atc_free(address);
    else
        obase_marked_free(address);
}

void* obase_memory_realloc(int owner, void* address, std::size_t bytes, const void* caller) {
    tell_audit(owner, address, caller);
    return owner == of_atc ? obase_marked_atc_realloc(address, bytes)
                           : obase_marked_realloc(address, bytes);
}

std::size_t obase_memory_managed_size(const void* address) {
    if (arming_engine::manages(address)) return obase_marked_usable_size(address);
    return atc_engine::manages(address) ? obase_marked_atc_usable_size(address) : 0;
}
