// SPDX-License-Identifier: MIT
#include "policy/touch_rate.hpp"

#include <algorithm>
#include <cmath>

namespace obase::policy {
namespace {

constexpr double surprise = 1.0 / 64;
constexpr unsigned windows_to_be_surprised = 8;
constexpr unsigned least_after_surprise = 3;
// A moving average with weight 1/16 remembers as much as the mean of 31 windows.
constexpr double windows_of_average = 32;
constexpr double drawn_touches = 0.15, drawn_windows = 0.45;

} // namespace

touch_rate::touch_rate() noexcept {
    std::array<double, 256> share{}; // by e
    for (unsigned e = 1; e < 256; ++e) share[e] = std::exp2((e - 255.0) / 16);
    for (unsigned n = 1; n <= most_windows; ++n)
        for (unsigned touched = 0; touched < 2; ++touched)
            for (unsigned e = 0; e < 256; ++e) {
                const double next = share[e] + (touched - share[e]) / n;
                const auto above = std::upper_bound(share.begin(), share.end(), next);
                const auto below = static_cast<unsigned>(above - share.begin()) - 1;
                const double part =
                    above == share.end() ? 0 : (next - share[below]) / (*above - share[below]);
                next_[n][touched][e] = static_cast<std::uint16_t>(
                    below << 8 | std::min(255u, static_cast<unsigned>(part * 256)));
            }
    for (unsigned n = 0; n <= stored_windows; ++n)
        for (unsigned e = 0; e < 256; ++e) {
            const double known = n == stored_windows ? windows_of_average : n;
            const double p = (share[e] * known + drawn_touches) / (known + drawn_windows);
            octaves_[n][e] =
                static_cast<std::int16_t>(std::lround(16 * std::log2(-std::log1p(-p) / base_rate)));
        }
    for (unsigned e = 0; e < 256; ++e) {
        const double windows = e == 255 ? 1 : std::ceil(std::log(surprise) / std::log1p(-share[e]));
        surprising_idle_[e] = static_cast<std::uint16_t>(std::min(windows, 65535.0));
        if (share[e] < surprise) surprising_touch_ = static_cast<std::uint8_t>(e + 1);
    }
}

std::uint16_t touch_rate::after(std::uint16_t state, bool touched, unsigned idle) noexcept {
    const unsigned e = state & 255;
    unsigned n = std::min(windows(state) + 1, most_windows);
    const std::uint16_t step = next_[n][touched ? 1 : 0][e];
    const unsigned up = (random() & 255) < (step & 255u) ? 1 : 0;
    const unsigned next = (step >> 8) + up;
    if (n > windows_to_be_surprised &&
        (touched ? e < surprising_touch_ : idle >= surprising_idle_[e]))
        n = std::max(n / 4, least_after_surprise);
    return static_cast<std::uint16_t>((state & 0x7000) |
                                      std::min<unsigned>(n, stored_windows) << 8 | next);
}

} // namespace obase::policy
