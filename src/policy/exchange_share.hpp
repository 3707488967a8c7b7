// SPDX-License-Identifier: MIT
//
// exchange_share: at the limit, how much of the budget may change places in a window: what is in use in COLD's file for
// what is idle in memory.
//
//     exchange_share share;
//     share.note(refused_bytes);        // after each window that was not early: in use in the file, and no room
//     budget.exchange(..., share.now())
//
// While what finds no room becomes less, exchanging pays: `most` of the budget. On a load with a tail it never ends, since
// there is always something in use that was idle before; all that is gained by then is wear. So when it has not become
// less for `patience` windows the share falls by a fourth in each, down to `least`. When it becomes less again, or clearly
// more finds no room than at the best time, the load has changed, and it is `most` again.
//
// Threads: the collector. Source: docs/temperature.md, "A budget".
#pragma once

#include <algorithm>
#include <cstdint>

namespace obase::policy {

class exchange_share {
  public:
    static constexpr double most = 1. / 16;
    static constexpr double least = 1. / 256;
    static constexpr unsigned patience = 4; // windows

    double now() const noexcept { return share_; }

    void note(std::uint64_t refused_bytes) noexcept {
        const auto refused = static_cast<double>(refused_bytes);
        mean_ = known_ ? mean_ + weight * (refused - mean_) : refused;
        if (!known_ || mean_ > best_ * clearly_more) {
            known_ = true;
            best_ = mean_;
            no_better_ = 0;
            share_ = most;
        } else if (mean_ < best_ * better) {
            best_ = mean_;
            no_better_ = 0;
            share_ = most;
        } else if (++no_better_ > patience) {
            share_ = std::max(share_ * 3 / 4, least);
        }
    }

  private:
    static constexpr double weight = 0.25; // of a window
    static constexpr double better = 0.97;
    static constexpr double clearly_more = 1.5;

    double mean_ = 0;
    double best_ = 0; // the least mean since the share was `most`
    unsigned no_better_ = 0;
    bool known_ = false;
    double share_ = most;
};

} // namespace obase::policy
