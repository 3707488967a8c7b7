// SPDX-License-Identifier: MIT
//
// The policies by name: what the option `policy` may say. The table is in policies.cpp; a new policy
// is a header beside it and a row there.
#pragma once

#include "options/choices.hpp"
#include "policy/placement.hpp"

#include <obase/options.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace obase::policy {

// `saturation`: the largest number of idle windows that a slot's word can count. Null: no memory.
using policy_maker = std::unique_ptr<placement> (*)(const options& settings, unsigned saturation);

// Null with *why_not set: no such policy, or its tiers are not valid.
std::unique_ptr<placement> make_policy(const options& settings, unsigned saturation,
                                       std::string* why_not);

// The table. Tests add policies to it, before the first object is made.
choices<policy_maker>& policies() noexcept;

} // namespace obase::policy
