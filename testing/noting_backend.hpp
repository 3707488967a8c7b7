// SPDX-License-Identifier: MIT
//
// noting_backend: a backend for tests that does nothing but remember what it was told, and says that
// all of what was asked to leave has left.
#pragma once

#include "backend/backend.hpp"

#include <memory>

namespace obase::testing {

class noting_backend final : public backend::backend {
  public:
    static std::unique_ptr<obase::backend::backend> make(const obase::backend::messenger&) {
        return std::make_unique<noting_backend>();
    }
    void after_window(const obase::backend::window_view& window, const options&,
                      const obase::backend::asker&) noexcept override {
        ++windows;
        tiers_seen = window.tiers.size();
        large_seen = window.large.size();
        for (std::size_t id = 0; id < window.tiers.size(); ++id) {
            const std::uint64_t bytes = window.tiers[id].leaving.bytes();
            done_.paged_out_bytes[id] += bytes;
            asked_to_leave += bytes;
        }
    }
    void skip_window() noexcept override { ++skipped; }
    const obase::backend::totals& done() const noexcept override { return done_; }

    // Of all of them in the process.
    static inline std::uint64_t windows = 0, skipped = 0, asked_to_leave = 0;
    static inline std::size_t tiers_seen = 0, large_seen = 0;

  private:
    obase::backend::totals done_;
};

} // namespace obase::testing
