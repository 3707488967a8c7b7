// SPDX-License-Identifier: MIT
//
// turns: which runs of homes are tracked, for how long, and which of them leave. For programs whose pointers say
// nothing (src/handles): a use of an object is seen only in a run that is open, where it costs a slow translation.
//
//     turns control({.share = .01});
//     control.pass(program_ns, uses);               // each tick: slow translations in tracked runs since the last
//     while (control.may_open()) ...                // runs whose turn it is, and then next(end, wanted, chosen)
//     switch (control.judge(run, longest)) ...      // once a window, of each run that was seen: what was seen of it
//     control.admit(ready, price_now);              // of those that are worth it: which leave
//     control.rest(number); control.end_of_window();
//
// A *turn* is some windows in which a run is opened, and closed again when it has had enough uses for the window: as many
// as it has objects, so that what is not among them is used much less than the rest. So a window costs a run a bounded
// number of slow translations, however hot it is.
//
// What they cost is paid from a credit that grows with the time in which the program can run, at `share`. Runs are
// opened while there is any. How many at a time doubles as long as they cost little, and halves when they cost too
// much, so that what the first ones cost is known before there are many. What took more than its share is paid for
// before another run is opened, so the share holds in the long run, whatever is used.
//
// A run that leaves is open for good, and each use of what is left of it costs. So those leave first that are used
// least for the memory that they give back, and not more than `leaves` says may be spent on such uses.
//
// A run whose turn was for nothing rests, twice as long each time.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace obase::policy {

struct turn_limits {
    double share = 0.01;       // of the program's time, for slow translations in tracked runs
    double leaves = 0.015;     // likewise, in runs whose objects have left
    double translation_ns = 6; // what a slow translation costs beyond a fast one
    double least_gain = 0.25;  // of a run's live bytes that must be cold before it leaves
    double most_freed = 0.125; // of its objects; beyond, they die too young for a turn
    double word_bytes = 9.5;   // of an object that has moved: word, bit and count (forwarding.hpp)
    double most_credit_ns = 5e6; // that saved turns may cost at once
};

struct tracked_run {
    std::uint32_t number = 0;
    std::uint32_t windows = 0;       // in which it has been seen
    std::uint32_t objects = 0;       // now
    std::uint32_t objects_begun = 0; // when its turn began
    std::uint64_t live_bytes = 0;
    std::uint64_t cold_bytes = 0; // of those: what the policy wants out
    double uses_per_second = 0;   // of the program's time
};

class turns {
  public:
    enum class verdict : std::uint8_t { goes_on, ends, is_ready };

    explicit turns(turn_limits limits) noexcept : limits_(limits) {}

    // What a slow translation was measured to cost.
    void set_price(double translation_ns) noexcept { limits_.translation_ns = translation_ns; }

    // `uses`: in tracked runs, while the program's threads ran for so long.
    void pass(std::uint64_t program_ns, std::uint64_t uses) noexcept {
        const double earned = limits_.share * static_cast<double>(program_ns);
        const double spent = limits_.translation_ns * static_cast<double>(uses);
        credit_ns_ = std::min(credit_ns_ + earned - spent, limits_.most_credit_ns);
        if (spent > earned)
            batch_ = std::max(batch_ / 2, least_batch);
        else if (spent <= earned / 2 && opened_)
            batch_ = std::min(batch_ * 2, most_batch);
        opened_ = false;
    }
    double credit_ns() const noexcept { return credit_ns_; }
    std::size_t batch() const noexcept { return batch_; }

    // How many may be opened now.
    std::size_t may_open() const noexcept { return credit_ns_ < 0 ? 0 : batch_; }
    // Some were.
    void opened() noexcept { opened_ = true; }

    // Adds to `chosen`, up to may_open() in all, runs below `end` whose turn it is: those behind the last one that
    // was asked about, round and round, that do not rest and for which wanted(number) is true.
    template <class Wanted>
    void next(std::uint32_t end, Wanted&& wanted, std::vector<std::uint32_t>& chosen) {
        for (std::uint32_t asked = 0; asked < end && chosen.size() < may_open(); ++asked) {
            if (cursor_ >= end) cursor_ = 0;
            const std::uint32_t run = cursor_++;
            if (!rests(run) && wanted(run)) chosen.push_back(run);
        }
    }
    // Uses in a window after which a run with so many objects has been seen enough.
    static std::uint64_t enough(std::size_t objects) noexcept {
        return std::max<std::uint64_t>(objects, least_seen);
    }

    // `longest`: windows for which a turn lasts at most.
    verdict judge(const tracked_run& run, std::uint32_t longest) const noexcept {
        const auto begun = static_cast<double>(run.objects_begun);
        if (run.objects == 0 || static_cast<double>(run.objects) < (1 - limits_.most_freed) * begun)
            return verdict::ends;
        const double gain = static_cast<double>(run.cold_bytes) - limits_.word_bytes * run.objects;
        if (gain >= limits_.least_gain * static_cast<double>(run.live_bytes))
            return verdict::is_ready;
        return run.windows >= longest ? verdict::ends : verdict::goes_on;
    }

    // Leaves in `ready` those that may leave, the best first, where uses of what has left cost `price_now` of the program's
    // time already.
    void admit(std::vector<tracked_run>& ready, double price_now) const {
        std::sort(ready.begin(), ready.end(), [](const tracked_run& a, const tracked_run& b) {
            const double left = a.uses_per_second * static_cast<double>(b.cold_bytes);
            const double right = b.uses_per_second * static_cast<double>(a.cold_bytes);
            return left != right ? left < right : a.number < b.number;
        });
        double price = price_now;
        std::size_t count = 0;
        for (; count < ready.size(); ++count) {
            price += price_of(ready[count].uses_per_second);
            if (price > limits_.leaves) break;
        }
        ready.resize(count);
    }
    // Of the program's time, if there are so many in a second of it.
    double price_of(double uses_per_second) const noexcept {
        return uses_per_second * limits_.translation_ns * 1e-9;
    }

    // Its turn was for nothing, or it came home.
    void rest(std::uint32_t number, std::uint32_t least = least_rest) {
        if (number >= resting_.size()) resting_.resize(number + 1);
        rest_of& r = resting_[number];
        r.length = static_cast<std::uint16_t>(
            std::clamp(2 * std::uint32_t{r.length}, least, longest_rest));
        r.until = window_ + r.length;
    }
    bool rests(std::uint32_t number) const noexcept {
        return number < resting_.size() && resting_[number].until > window_;
    }
    void end_of_window() noexcept { ++window_; }

    static constexpr std::uint64_t least_seen = 64;
    static constexpr std::uint32_t least_rest = 4; // windows
    static constexpr std::uint32_t rest_of_used = 16;
    static constexpr std::uint32_t longest_rest = 256;
    static constexpr std::size_t least_batch = 8;
    static constexpr std::size_t most_batch = 256;

  private:
    struct rest_of {
        std::uint32_t until = 0;
        std::uint16_t length = 0;
    };

    turn_limits limits_;
    double credit_ns_ = 0;
    std::size_t batch_ = 4 * least_batch;
    bool opened_ = false;
    std::uint32_t cursor_ = 0;
    std::uint32_t window_ = 0;
    std::vector<rest_of> resting_; // by run
};

} // namespace obase::policy
