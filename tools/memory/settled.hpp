// SPDX-License-Identifier: MIT
//
// settling: says when a series of sizes, one for each window, has come to rest: in the last `windows`
// of them the largest is at most `share` above the smallest.
//
//     settling used(20, .01);
//     used.add(bytes);
//     if (used.settled()) ... // and used.windows_seen() of them went by
//
// A drift that is slower than that counts as rest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace obase::tools {

class settling {
  public:
    settling(std::size_t windows, double share) : windows_(windows), share_(share) {}

    void add(std::uint64_t bytes) {
        ++seen_;
        last_.push_back(bytes);
        if (last_.size() > windows_) last_.pop_front();
    }
    bool settled() const {
        if (last_.size() < windows_ || last_.empty()) return false;
        const auto [least, most] = std::minmax_element(last_.begin(), last_.end());
        return static_cast<double>(*most) <= static_cast<double>(*least) * (1 + share_);
    }
    // What comes now is another matter.
    void start_again() { last_.clear(); }
    std::size_t windows_seen() const noexcept { return seen_; }

  private:
    std::size_t windows_;
    double share_;
    std::size_t seen_ = 0;
    std::deque<std::uint64_t> last_;
};

} // namespace obase::tools
