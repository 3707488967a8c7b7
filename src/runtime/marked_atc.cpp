// SPDX-License-Identifier: MIT
//
// Marked pointers (obase/marked.h) on the ATC protocol. docs/atc.md has its phases and the invariants
// I1..I3.
//
// Two slots for a moment. In ACTIVE, ATC = 0 in the slot that is moved from says that nobody holds the
// object. If the object is in another slot, too, its readers are counted there. Say an operation that
// began in INACTIVE stores X, which it found in A, into B; the collector visits B and enters PREPARE; a
// reader enters, counts himself in at A and has X; the operation takes X out of A and ends; ACTIVE.
// Nobody is counted in B, but the reader uses X. So when an operation ends and the phase is not
// INACTIVE, each slot into which it stored an address becomes sticky.
//
// Is that enough? Let B be moved from in ACTIVE, and R be a scope that is open then and got X from
// another slot, C. R counts, so it entered after the phase became PREPARE, and read C later still. Let
// S be the operation that stored X into B.
//   - S looked at the phase, when it stored or when it ended, after it had become PREPARE: B is sticky,
//     and is not moved from in this round. (A word that says otherwise was stored with a look from
//     before PREPARE, hence in a scope that is silent, for whose end ACTIVE waits, and with it for the
//     look at the end.)
//   - Else S's last look was before PREPARE, and by then it had taken X out of every other slot: every
//     store here is a locked instruction, so it is seen by all before the look. R found X in C after
//     that, so another operation has shown X there and left it in B: rule 2 of the header.
// B is sticky until INACTIVE (I3). By then all scopes that counted have ended, R among them.
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

    static void put(slot& s, bits word) noexcept { protocol::exchange(s, word); }
    static bits take(slot& s, bits word) noexcept { return protocol::exchange(s, word); }
    static bits owned(bits word) noexcept { return obase::word::atc::leaving(word); }
    // The mode of a scope is that of the outermost one, so it stays the same in the whole operation.
    static void began() noexcept {
        if (protocol::is_silent()) obase_marked_atc_direct = obase::word::atc::access_bit;
    }
    // atc::detach_thread() does the same for a thread that ends in the middle.
    static void ends() noexcept { obase_marked_atc_direct = 0; }
    static bool settles() noexcept { return !obase::runtime_internal::core().state.is_quiet(); }
    static void settle(slot& s) noexcept { obase::word::count_in_forever(s); }
};

using functions = obase::runtime_internal::marked_pointers<marked_atc>;
using obase::runtime_internal::free_plain;

} // namespace

#define OBASE_MARKED(name) obase_marked_atc_##name
#include "runtime/marked_functions.inc"
