// SPDX-License-Identifier: MIT
//
// The memory limit of a cell: how it is written, and how it comes into force for a process that is
// above it at first.
//
//     limiter limit(group);
//     limit.ask_for(bytes_of_limit("35%", limit.charge_or(0)), false);
//     for (;;) limit.tighten(), ...; // now and then
//
// Where there is swap the kernel can reclaim at once what is above. Where there is none, a limit below
// the charge would end the process, so it comes into force when the charge has come down to it.
#pragma once

#include "tools/ycsb/control_group.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace obase::tools {

// A number of bytes with an optional suffix K, M, G or T, or a percentage of `whole` such as 35%.
// Throws std::invalid_argument for any other text, and for 0.
std::uint64_t bytes_of_limit(const std::string& text, std::uint64_t whole);

class limiter {
  public:
    // The group outlives it.
    explicit limiter(const control_group& group) : group_(group) {}

    std::uint64_t charge_or(std::uint64_t other) const {
        return group_.made() ? group_.charge() : other;
    }
    void ask_for(std::uint64_t bytes, bool reclaimable) {
        wanted_ = bytes;
        reclaimable_ = reclaimable;
        tighten();
    }
    // Puts the limit into force if it is wanted, and can be.
    void tighten();
    // From now on there is one, if one is wanted: what is charged now where that is above.
    void insist();
    // In bytes; nothing until then.
    const std::optional<std::uint64_t>& in_force() const noexcept { return in_force_; }

  private:
    const control_group& group_;
    std::optional<std::uint64_t> wanted_;
    std::optional<std::uint64_t> in_force_;
    bool reclaimable_ = false;
};

} // namespace obase::tools
