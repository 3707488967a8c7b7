// SPDX-License-Identifier: MIT
#include "runtime/marked_audit.hpp"

#include "audit/audit.hpp"
#include "runtime/arming_engine.hpp"

#include <obase/arming.hpp>
#include <obase/options.hpp>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <unistd.h>
#include <utility>

namespace obase::runtime_internal {

namespace {

// The program's own status goes before: a test that failed has failed.
void at_exit(int status, void*) {
    if (arming::in_scope())
        audit::auditor::running()->note(audit::kind::never_ended, nullptr,
                                        audit::current_operation);
    const bool errors = audit::auditor::running()->finish();
    if (!errors || status != 0) return;
    std::fflush(nullptr);
    _exit(1);
}

} // namespace

void start_audit_if_asked(bool arming) noexcept {
    static bool asked = false; // under the caller's lock
    if (std::exchange(asked, true) || std::getenv("OBASE_AUDIT") == nullptr) return;
    try {
        if (!options::from_environment().audit) return;
    } catch (const std::bad_alloc&) {
        return;
    }
    if (!arming) {
        std::fprintf(stderr, "obase: no audit: the program was compiled with --obase-protocol=atc; "
                             "the audit is for arming\n");
        return;
    }
    arming_engine::instance().start_audit();
    if (audit::on()) on_exit(&at_exit, nullptr);
}

} // namespace obase::runtime_internal
