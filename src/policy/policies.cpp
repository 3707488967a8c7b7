// SPDX-License-Identifier: MIT
#include "policy/policies.hpp"

#include "policy/graded.hpp"
#include "policy/three_temperatures.hpp"

namespace obase::policy {

namespace {

template <class Policy>
std::unique_ptr<placement> make(const options& settings, unsigned saturation) {
    return std::make_unique<Policy>(settings, saturation);
}

} // namespace

choices<policy_maker>& policies() noexcept {
    static choices<policy_maker> table{{"papers", make<three_temperatures>},
                                       {"graded", make<graded>}};
    return table;
}

std::unique_ptr<placement> make_policy(const options& settings, unsigned saturation,
                                       std::string* why_not) {
    const policy_maker found = policies().find(settings.policy);
    if (found == nullptr) {
        *why_not = "policy (OBASE_POLICY): " + policies().unknown(settings.policy);
        return nullptr;
    }
    std::unique_ptr<placement> made = found(settings, saturation);
    if (made == nullptr || !made->tiers().valid() || made->state_bits() > 16) {
        *why_not = "the policy '" + settings.policy + "' has no valid table of tiers";
        return nullptr;
    }
    return made;
}

} // namespace obase::policy
