// SPDX-License-Identifier: MIT
//
// Marked pointers (obase/marked.h) on the ATC protocol. docs/atc.md has its phases and the invariants
// I1..I3.
// That also says why it is safe that an object is in two slots for a moment.
#include <obase/marked.h>

#include "runtime/atc_engine.hpp"
#include "runtime/marked_kinds.hpp"
#include "runtime/marked_memory.hpp"
#include "runtime/marked_pointers.hpp"

#include <obase/atc.hpp>
#include <obase/word/atc.hpp>

#include "os/own_memory.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <new>

constinit thread_local std::uint64_t obase_marked_atc_direct = 0;

namespace {

struct marked_atc : obase::runtime_internal::marked_on_atc<obase::atc> {
    using engine = obase::runtime_internal::atc_engine;
    static void slot_made(const slot& s, const void* caller) noexcept {
        engine::instance().slot_made(&s, caller);
    }
    static void slot_moved(const slot& from, const slot& to) noexcept {
        engine::instance().slot_moved(&from, &to);
    }
    // The mode of a scope is that of the outermost one, so it stays the same in the whole operation.
    static void began(const void*) noexcept {
        if (protocol::is_silent()) obase_marked_atc_direct = obase::word::atc::access_bit;
    }
    // atc::detach_thread() does the same for a thread that ends in the middle.
    static void ends() noexcept { obase_marked_atc_direct = 0; }
    static obase::word::native_atomic<bool>& short_of_memory() noexcept { return short_; }

  private:
    static inline constinit obase::word::native_atomic<bool> short_{false};
};

using functions = obase::runtime_internal::marked_pointers<marked_atc>;
using obase::runtime_internal::free_plain;
using obase::runtime_internal::usual_alignment;

} // namespace

bool obase::runtime_internal::had_atc_slots(const void* begin, std::size_t bytes) noexcept {
    return functions::had_slots(begin, bytes);
}

#define OBASE_MARKED(name) obase_marked_atc_##name
#include "runtime/marked_functions.inc"
