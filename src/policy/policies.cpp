// SPDX-License-Identifier: MIT
#include "policy/policies.hpp"

#include "policy/three_temperatures.hpp"

#include <iterator>
#include <new>

namespace obase::policy {

namespace {

template <class Policy>
std::unique_ptr<placement> make(const options& settings, unsigned saturation) {
    return std::make_unique<Policy>(settings, saturation);
}

struct row {
    const char* name = nullptr;
    policy_maker make = nullptr;
};

// The table. The empty rows are for add_policy().
row rows[8] = {
    {"papers", make<three_temperatures>},
};

const row* find(std::string_view name) noexcept {
    for (const row& one : rows)
        if (one.name != nullptr && one.name == name) return &one;
    return nullptr;
}

} // namespace

std::unique_ptr<placement> make_policy(const options& settings, unsigned saturation,
                                       std::string* why_not) {
    const row* found = find(settings.policy);
    if (found == nullptr) {
        *why_not = "there is no policy '" + settings.policy + "'; there are: " + policy_names();
        return nullptr;
    }
    std::unique_ptr<placement> made = found->make(settings, saturation);
    if (made == nullptr || !made->tiers().valid() || made->state_bits() > 16) {
        *why_not = "the policy '" + settings.policy + "' has no valid table of tiers";
        return nullptr;
    }
    return made;
}

bool is_policy(std::string_view name) noexcept { return find(name) != nullptr; }

std::string policy_names() {
    std::string text;
    for (const row& one : rows)
        if (one.name != nullptr) text += (text.empty() ? "" : ", ") + std::string(one.name);
    return text;
}

bool add_policy(const char* name, policy_maker make) noexcept {
    if (find(name) != nullptr) return false;
    for (row& one : rows) {
        if (one.name != nullptr) continue;
        one = {name, make};
        return true;
    }
    return false;
}

} // namespace obase::policy
