// SPDX-License-Identifier: MIT
//
// What the translation units with marked pointers, of the passes or of obase-rewrite, say of themselves
// when they are loaded, before any of their code runs: one protocol per program, and a library that
// suits them.
#include <obase/marked.h>

#include "heap/sanitized.hpp"
#include "runtime/marked_audit.hpp"
#include "runtime/marked_units.hpp"

#include <obase/word/atomic.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace {

// Copies: the shared object that holds the originals may be unloaded.
constinit std::mutex lock;
constinit char first_protocol[16] = "";
constinit char first_unit[512] = "";
// Pairs with has_marked_units(), which takes no lock: in the child of a fork it may be held for ever.
constinit obase::word::native_atomic<bool> protocol_known{false};

} // namespace

bool obase::runtime_internal::has_marked_units(const char* protocol) noexcept {
    return protocol_known.load_acquire() && std::strcmp(first_protocol, protocol) == 0;
}

void obase_marked_unit(const char* protocol, const char* unit) {
    const std::lock_guard guard(lock);
    if (first_protocol[0] == '\0') {
        std::snprintf(first_protocol, sizeof first_protocol, "%s", protocol);
        std::snprintf(first_unit, sizeof first_unit, "%s", unit);
        protocol_known.store_release(true);
        obase::runtime_internal::start_audit_if_asked(std::strcmp(protocol, "arming") == 0);
        return;
    }
    if (std::strcmp(first_protocol, protocol) == 0) return;
    std::fprintf(stderr,
                 "obase: '%s' was compiled with --obase-protocol=%s, and '%s' with "
                 "--obase-protocol=%s; compile all of a program with the same one (obase-rewrite: "
                 "--protocol=)\n",
                 first_unit, first_protocol, unit, protocol);
    std::_Exit(1); // no destructors: nothing has been constructed yet, or it is in use
}

void obase_marked_unit_thread_sanitized(const char* unit) {
    if constexpr (obase::heap::thread_sanitized) return;
    std::fprintf(stderr,
                 "obase: '%s' was compiled with -fsanitize=thread, and libobase was not; link one "
                 "that was: cmake --preset tsan in obase's source, then "
                 "--obase-library=build/tsan/lib/libobase.a\n",
                 unit);
    std::_Exit(1);
}
