// SPDX-License-Identifier: MIT
//
// server::window_times: when the collector's windows ended, for telling how long a key has not been used.
//
//     times.note(statistics.windows, now_ms());      // by the timer
//     times.since(slot.idle_windows(window))         // milliseconds before `now_ms`
//
// Windows are not of one length: they are longer while the server rests. Known for the last `known`; those before
// count as long as the known ones are on average.
//
// Threads: note() by one, since() by any.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace crestdb::server {

class window_times {
  public:
    static constexpr std::uint64_t known = 64;

    // So many windows have ended.
    void note(std::uint64_t windows, std::int64_t now_ms) noexcept {
        const std::uint64_t before = windows_;
        if (windows <= before) return;
        for (std::uint64_t w = windows - before > known ? windows - known + 1 : before + 1;
             w <= windows; ++w)
            ended_[w % known] = now_ms;
        windows_ = windows;
    }
    // How long at least ago it was used, if the collector has seen it unused for so many windows (managed_slot).
    // Milliseconds.
    std::int64_t since(unsigned idle_windows, std::int64_t now_ms) const noexcept {
        const std::uint64_t windows = windows_;
        if (idle_windows == 0 || windows == 0) return 0;
        // 1: used before the end of the last one.
        const std::uint64_t back = idle_windows - 1;
        const std::uint64_t there = windows < known ? windows : known;
        if (back < there) return now_ms - ended_[(windows - back) % known];
        const std::int64_t oldest = ended_[(windows - there + 1) % known];
        const std::int64_t all = there > 1 ? ended_[windows % known] - oldest : 0;
        const std::int64_t each = there > 1 ? all / static_cast<std::int64_t>(there - 1) : 0;
        return now_ms - oldest + static_cast<std::int64_t>(back - (there - 1)) * each;
    }

  private:
    std::array<std::atomic<std::int64_t>, known> ended_{};
    std::atomic<std::uint64_t> windows_{0};
};

} // namespace crestdb::server
