// SPDX-License-Identifier: MIT
//
// The audit's beginning and end in a program with marked pointers: before its constructors, if OBASE_AUDIT
// says so, and when it exits.
#pragma once

namespace obase::runtime_internal {

// Called by each translation unit, with its protocol.
void start_audit_if_asked(bool arming) noexcept;

} // namespace obase::runtime_internal
