// SPDX-License-Identifier: MIT
//
// why_not_freed: says in one sentence why obase has given no cold memory back so far, or little; and
// what_was_freed: how much, where it has.
//
// A pure function from options, facts about the machine and one snapshot of the statistics, whose
// numbers belong together, to the first reason that holds, in the order in which the way from an
// idle object to freed memory can be blocked: the mode, the means, the objects, the policy.
// runtime::self_check() and the statistics at exit show it.
#pragma once

#include "runtime/self_check.hpp"

#include <obase/options.hpp>
#include <obase/statistics.hpp>

#include <cstdint>
#include <string>

namespace obase::runtime_internal {

// "" if memory was freed: at least an eighth of what the kernel was asked to take. `pageout_after`: as in
// policy::directives.
std::string why_not_freed(const options& settings, const system_facts& facts,
                          const statistics& seen, std::uint64_t pageout_after = 0);

// Before anything has run: that no memory leaves with this mode on this machine; "" where some may.
std::string nothing_leaves_by_itself(const options& settings, const system_facts& facts);

// `resident`: bytes of the process, now.
std::string what_was_freed(const statistics& seen, std::uint64_t resident);

} // namespace obase::runtime_internal
