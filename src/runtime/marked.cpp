// SPDX-License-Identifier: MIT
//
// Marked pointers (obase/marked.h) on the arming protocol.
// docs/protocol.md says why it is safe that an object is in two slots for a moment.
#include <obase/marked.h>

#include "audit/audit.hpp"
#include "runtime/arming_engine.hpp"
#include "runtime/marked_kinds.hpp"
#include "runtime/marked_memory.hpp"
#include "runtime/marked_pointers.hpp"

#include <obase/arming.hpp>
#include <obase/word/arming.hpp>

#include "os/own_memory.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace {

struct marked_arming : obase::runtime_internal::marked_on_arming<obase::arming> {
    using engine = obase::runtime_internal::arming_engine;
    static obase::word::native_atomic<bool>& short_of_memory() noexcept { return short_; }

    static void began(const void* caller) noexcept {
        if (obase::audit::on()) [[unlikely]]
            obase::audit::operation_begins(caller);
    }
    static void left_by_jump(const void* caller) noexcept {
        if (obase::audit::on())
            obase::audit::auditor::running()->note(obase::audit::kind::left_by_jump, nullptr,
                                                   caller);
    }
    static void slot_made(const slot& s, const void* caller) noexcept {
        if (obase::audit::on()) obase::audit::auditor::running()->slot_made(&s, caller);
        engine::instance().slot_made(&s, caller);
    }
    static void slot_moved(const slot& from, const slot& to) noexcept {
        if (obase::audit::on()) obase::audit::auditor::running()->slot_moved(&from, &to);
        engine::instance().slot_moved(&from, &to);
    }
    static void retired(const void* object, const void* caller) noexcept {
        if (obase::audit::on()) [[unlikely]]
            obase::audit::auditor::running()->retired(object, caller);
    }
    // What was in the slots is not kept by anyone, so the audit must not find it.
    static void ended(void* memory, std::size_t bytes) noexcept {
        if (obase::audit::on()) std::memset(memory, 0, bytes);
    }

  private:
    static inline constinit obase::word::native_atomic<bool> short_{false};
};

// What compiler/passes/inline_scopes.cpp makes instructions of.
static_assert(offsetof(obase::arming::thread_context, slot) == 0);
static_assert(offsetof(obase::arming::thread_context, epoch) == 8);
static_assert(offsetof(obase::arming::record, epoch) == 0);
static_assert(offsetof(obase::arming::record, fenced) == 8);
static_assert(offsetof(obase::arming::record, exit_work) == 9);

using functions = obase::runtime_internal::marked_pointers<marked_arming>;
using obase::runtime_internal::free_plain;
using obase::runtime_internal::usual_alignment;

} // namespace

bool obase::runtime_internal::had_arming_slots(const void* begin, std::size_t bytes) noexcept {
    return functions::had_slots(begin, bytes);
}

#define OBASE_MARKED(name) obase_marked_##name
#include "runtime/marked_functions.inc"
