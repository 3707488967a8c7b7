// SPDX-License-Identifier: MIT
//
// window_ages: for how many windows that are not early an object has been idle, from the number of the window in
// which it was armed.
//
//     ages.begin_window(early);
//     ages.whole(window - stamp)
//
// Of windows that are not early, early ones are parts. An object that was armed at the end of one window has been
// idle in those after it; the first of these is whole only if no early window was a part of it before the
// arming. So: of the windows from the arming on that are not early, all but one.
//
// Known for the last `known` windows, which is as far as stamps go; what is older counts as if it were armed then.
//
// Cost: 64 KiB; two loads a question. Threads: the collector.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace obase::collector {

class window_ages {
  public:
    static constexpr unsigned known = 1u << 14;

    void begin_window(bool early) noexcept {
        counted_ += early ? 0 : 1;
        any_early_ = any_early_ || early;
        counts_[++window_ % known] = counted_;
    }
    // `windows`: of any kind, since the arming.
    unsigned whole(unsigned windows) const noexcept {
        if (!any_early_) return windows;
        const std::uint32_t before = counts_[(window_ - std::min(windows, known - 2) - 1) % known];
        const std::uint32_t counted = counted_ - before;
        return counted == 0 ? 0 : counted - 1;
    }

  private:
    std::array<std::uint32_t, known> counts_{}; // windows that were not early, up to this one
    std::uint32_t window_ = 0;
    std::uint32_t counted_ = 0;
    bool any_early_ = false;
};

} // namespace obase::collector
