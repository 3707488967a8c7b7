// SPDX-License-Identifier: MIT
//
// Marked pointers (obase/marked.h) on the ATC protocol. docs/atc.md has its phases and the invariants
// I1..I3.
//
// Two slots for a moment. In ACTIVE, ATC = 0 in the slot that is moved from says that nobody holds the
// object. If the object is in another slot, too, its readers are counted there. Say an operation that
// began in INACTIVE stores X, which it found in A, into B; the collector visits B and enters PREPARE; a
// reader enters, counts himself in at A and has X; the operation takes X out of A and ends; ACTIVE.
// Nobody is counted in B, but the reader uses X. So PREPARE lasts for two waits.
//
// Is that enough? Let B be moved from in ACTIVE, and R be a scope that is open then and got X from
// another slot, C. R counts, and the second wait did not cover it, so C showed X after the first wait
// had ended. Let S be the operation that stored X into B.
//   - S looked at the phase, when it stored, after it had become PREPARE: B is sticky, and is not moved
//     from in this round.
//   - Else S is silent, and the first wait outlasted it. By its end it had taken X out of C (rule 1).
// An operation that counts and found X in B is counted there until it ends, and by then X is out of
// wherever it stored it (rule 1). R found it there before, and is not counted in B: rule 2 of the
// header. B is sticky until INACTIVE (I3).
//
// Why no store is a plain one, of null either: it would take away the counts of those who are inside the
// slot, and they rely on them for whatever the slot holds next.
#include <obase/marked.h>

#include "runtime/atc_engine.hpp"
#include "runtime/marked_pointers.hpp"

#include <obase/atc.hpp>
#include <obase/word/atc.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

constinit thread_local std::uint64_t obase_marked_atc_direct = 0;

namespace {

struct marked_atc {
    using protocol = obase::atc;
    using engine = obase::runtime_internal::atc_engine;
    using slot = protocol::slot;
    using bits = obase::word::bits;

    static void hold(slot& s) noexcept { obase::word::count_in_forever(s); }
    static void put(slot& s, bits word) noexcept { protocol::exchange(s, word); }
    static bits take(slot& s, bits word) noexcept { return protocol::exchange(s, word); }
    static bits owned(bits word) noexcept { return obase::word::atc::leaving(word); }
    // The mode of a scope is that of the outermost one, so it stays the same in the whole operation.
    static void began() noexcept {
        if (protocol::is_silent()) obase_marked_atc_direct = obase::word::atc::access_bit;
    }
    // atc::detach_thread() does the same for a thread that ends in the middle.
    static void ends() noexcept { obase_marked_atc_direct = 0; }
};

using functions = obase::runtime_internal::marked_pointers<marked_atc>;
using obase::runtime_internal::free_plain;
using obase::runtime_internal::usual_alignment;

} // namespace

#define OBASE_MARKED(name) obase_marked_atc_##name
#include "runtime/marked_functions.inc"
