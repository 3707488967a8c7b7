// SPDX-License-Identifier: MIT
//
// The policies by name: what the option `policy` may say. The table is in policies.cpp; a new policy
// is a header beside it and a row there.
#pragma once

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

bool is_policy(std::string_view name) noexcept;
std::string policy_names(); // "papers, ..."

// Adds a policy that the library does not have; for tests. Before the first object is made. `name`
// is static text. False: there is one of that name, or no room.
bool add_policy(const char* name, policy_maker make) noexcept;

} // namespace obase::policy
