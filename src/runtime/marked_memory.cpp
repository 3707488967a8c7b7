// SPDX-License-Identifier: MIT
//
// Memory that comes back from code which knows nothing of obase: the half of compiler/driver/memory_functions.c that
// is in the library.
#include "audit/audit.hpp"
#include "runtime/arming_engine.hpp"
#include "runtime/atc_engine.hpp"
#include "runtime/marked_pointers.hpp"

#include <obase/marked.h>

#include <cstddef>

namespace obase::runtime_internal {

constinit thread_local bool frees_what_has_waited = false;

} // namespace obase::runtime_internal

namespace {

using obase::runtime_internal::arming_engine;
using obase::runtime_internal::atc_engine;

enum : int { nobody, of_arming, of_atc };

// Slots, or traces of them, may lie in the 16 MiB around: a leaf of the directory is there.
template <class Engine>
bool may_have_slots(const void* address) noexcept {
    Engine* engine = Engine::instance_if_any();
    return engine != nullptr && !obase::os::asks_for_stack() &&
           engine->directory().has_leaf_in(address, static_cast<const char*>(address) + 1);
}

void tell_audit(int owner, const void* address, const void* caller) noexcept {
    if (owner == of_arming && obase::audit::on() && arming_engine::manages(address))
        obase::audit::auditor::running()->note(obase::audit::kind::foreign_free, address, caller);
}

} // namespace

int obase_memory_owner(const void* address) {
    if (arming_engine::manages(address)) return of_arming;
    if (atc_engine::manages(address)) return of_atc;
    if (obase::runtime_internal::frees_what_has_waited) return nobody;
    if (may_have_slots<arming_engine>(address)) return of_arming;
    return may_have_slots<atc_engine>(address) ? of_atc : nobody;
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

std::size_t obase_memory_usable_size(int owner, const void* address) {
    return owner == of_atc ? obase_marked_atc_usable_size(address)
                           : obase_marked_usable_size(address);
}
