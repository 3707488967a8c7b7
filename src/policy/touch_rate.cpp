// SPDX-License-Identifier: MIT
#include "policy/touch_rate.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace obase::policy {
namespace {

constexpr double surprise = 1.0 / 64;
constexpr unsigned windows_to_be_surprised = 8;
constexpr unsigned least_after_surprise = 3;
constexpr double units_of_octave = 24; // of e
// A moving average with weight 1/64 remembers as much as the mean of 127 windows; that many are not waited
// for.
constexpr double windows_of_average = 96;
constexpr unsigned windows_to_compare = 8;
// Squares that are off by more than both together are no chance. The mean of n windows is off by 1/n of its
// variance, n is less than the memory for some, and all are rounded; and no load's windows are quite alike.
constexpr double misfit_of_memory = 2; // over the memory in windows
constexpr double misfit_of_windows = 0.04;
constexpr double shift_misfit = 1.25; // of a load that has changed altogether
constexpr double memory_growth = 1.15;
constexpr double drawn_touches = 0.15, drawn_windows = 0.45;
constexpr double experience_kept = 3. / 4;    // from one window to the next
constexpr double believed_touches = 128;      // so many as expected, before any were seen
constexpr double most_expected = 1 - 1. / 64; // a share of windows: 4 touches per window

} // namespace

touch_rate::touch_rate() noexcept {
    const auto& share = share_;
    for (unsigned e = 1; e < 256; ++e) share_[e] = std::exp2((e - 255.0) / units_of_octave);
    for (unsigned n = 1; n < codes; ++n)
        for (unsigned e = 0; e < 256; ++e) {
            const double known = n == codes - 1 ? windows_of_average : windows_of_[n];
            const double p = (share[e] * known + drawn_touches) / (known + drawn_windows);
            expected_[n][e] = static_cast<float>(p);
            deviation_[n][e] = static_cast<float>(std::sqrt(p * (1 - p)));
        }
    find_octaves();
    for (unsigned e = 0; e < 256; ++e) {
        const double windows = e == 255 ? 1 : std::ceil(std::log(surprise) / std::log1p(-share[e]));
        surprising_idle_[e] = static_cast<std::uint16_t>(std::min(windows, 65535.0));
        if (share[e] < surprise) surprising_touch_ = static_cast<std::uint8_t>(e + 1);
    }
}

// Between the middles of two groups some of both.
touch_rate::experience touch_rate::experience_of(unsigned n, unsigned e) const noexcept {
    constexpr unsigned width = 256 / groups;
    const auto& of = experience_[n];
    if (e < width) return of[0];
    const double at = (e + 0.5) / width - 0.5;
    const auto below = static_cast<unsigned>(at);
    if (below + 1 == groups) return of[below];
    const double share = at - below;
    return {of[below].expected * (1 - share) + of[below + 1].expected * share,
            of[below].happened * (1 - share) + of[below + 1].happened * share};
}

// Where little was seen of states that are alike, those hold from which an untouched window leads to them, with
// fewer windows or with as many: objects that were made together are in each for a window only.
void touch_rate::find_octaves() noexcept {
    struct worth {
        double off = 1; // what happened over what was expected
        double known = 0;
    };
    // By which an untouched window lowers e.
    const auto step_after = [](double windows) {
        return static_cast<unsigned>(
            std::lround(units_of_octave * std::log2((windows + 1) / windows)));
    };
    std::array<worth, 256> now{}, shorter{}; // by e
    for (unsigned n = 1; n < codes; ++n) {
        const unsigned from_shorter = n == 1 ? 0 : step_after(windows_of_[n - 1]);
        const unsigned from_same = step_after(windows_of_[n]);
        const bool stays = n == codes - 1 || windows_of_[n + 1] - windows_of_[n] > 1; // by chance
        for (unsigned e = 256; e-- > 0;) {
            const auto before = [e](const std::array<worth, 256>& of, unsigned step) {
                return e + step > 255 ? worth{} : of[e == 0 ? 0 : e + step];
            };
            const worth a = before(shorter, from_shorter);
            const worth b = stays && e != 0 ? before(now, from_same) : worth{};
            const double off = (a.off * a.known + b.off * b.known + 1) / (a.known + b.known + 1);
            const experience seen = experience_of(n, e);
            now[e].known = seen.expected + std::min(believed_touches, (a.known + b.known) / 4);
            now[e].off =
                (seen.happened + believed_touches * off) / (seen.expected + believed_touches);
            const double p = std::min(double{expected_[n][e]} * now[e].off, most_expected);
            octaves_[n][e] =
                static_cast<std::int16_t>(std::lround(16 * std::log2(-std::log1p(-p) / base_rate)));
        }
        shorter = now;
    }
}

unsigned touch_rate::code_within(double windows) noexcept {
    unsigned found = codes - 1;
    while (windows_of_[found] > windows) --found;
    return found;
}

// The e of a share, or the next one, the nearer the likelier. `chance`: 0 to 255.
unsigned touch_rate::rounded(double share, unsigned chance) const noexcept {
    const auto above = std::upper_bound(share_.begin(), share_.end(), share);
    const auto e = static_cast<unsigned>(std::max<std::ptrdiff_t>(above - share_.begin() - 1, 0));
    if (above == share_.end()) return e;
    return e + (chance < 256 * (share - share_[e]) / (*above - share_[e]) ? 1 : 0);
}

std::uint16_t touch_rate::joined(std::uint16_t state, const sum& all) const noexcept {
    const double share = all.shares / all.count;
    const unsigned known = (all.codes + all.count / 2) / all.count;
    const unsigned e = rounded(share, drawn_ >> 16 & 255);
    return static_cast<std::uint16_t>((state & 0xf000) | known << 8 | e);
}

void touch_rate::draw() noexcept {
    sum_up();
    drawn_ = random();
}

void touch_rate::end_window() noexcept {
    draw();
    misfit_ = chance_ > 0 ? off_ / chance_ : 0;
    off_ = chance_ = 0;
    if (misfit_ > shift_misfit) {
        memory_ = least_memory;
        for (auto& of_code : experience_) of_code.fill({}); // of what is no more
    } else if (misfit_ > 1 + misfit_of_windows + misfit_of_memory / memory_) {
        memory_ = std::max(least_memory, memory_ / 2);
    } else if (misfit_ > 0) {
        memory_ = std::min(double{most_windows}, memory_ * memory_growth);
    }
    last_code_ = code_within(memory_);
    find_octaves();
    for (auto& of_code : experience_)
        for (experience& seen : of_code) {
            seen.expected *= experience_kept;
            seen.happened *= experience_kept;
        }
}

// What the slots of the window that ends had in common with what was expected of them.
void touch_rate::sum_up() noexcept {
    for (unsigned i = 0; i < successors_.size(); ++i) {
        if (successors_[i].met == 0) continue;
        const double slots = std::exchange(successors_[i].met, 0);
        const unsigned e = i / 2 & 255, of = code(static_cast<std::uint16_t>(i / 2));
        const bool touched = i % 2 != 0;
        const double p = double{expected_[of][e]};
        if (windows_of_[of] >= windows_to_compare) {
            const double difference = touched ? 1 - p : p;
            off_ += slots * difference * difference;
            chance_ += slots * p * (1 - p);
        }
        if (windows_of_[of] != 0) {
            experience& seen = experience_[of][group_of(e)];
            seen.expected += slots * p;
            if (touched) seen.happened += slots;
        }
    }
}

void touch_rate::work_out(successor& s, std::uint16_t state, bool touched) const noexcept {
    const unsigned e = state & 255;
    unsigned known = std::min(code(state), last_code_);
    const unsigned n = std::min(unsigned{windows_of_[known]} + 1, static_cast<unsigned>(memory_));
    const double share = share_[e] + ((touched ? 1 : 0) - share_[e]) / n;
    const unsigned next = rounded(share, drawn_ & 255);
    if (known < last_code_) {
        const unsigned gap = unsigned{windows_of_[known + 1]} - unsigned{windows_of_[known]};
        if ((drawn_ >> 8) % gap == 0) ++known;
    }
    const bool may_be_surprised = n > windows_to_be_surprised;
    const unsigned surprised = code_within(std::max(n / 4, least_after_surprise));
    if (touched && may_be_surprised && e < surprising_touch_) known = surprised;
    s.forgets_after = !touched && may_be_surprised ? surprising_idle_[e] : std::uint16_t{0};
    s.next = static_cast<std::uint16_t>(surprised << 12 | known << 8 | next);
}

} // namespace obase::policy
