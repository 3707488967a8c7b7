// SPDX-License-Identifier: MIT
#include "policy/graded.hpp"

#include "policy/lot.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace obase::policy {
namespace {

constexpr int octave = 16; // in sixteenths
// Beyond the class's own octave before a window counts against it; and before it counts twice.
constexpr int margin = octave / 2;
constexpr int clearly = octave + margin;
constexpr double enough_faults = 16;       // of which a prediction can be judged
constexpr double weight_of_window = 0.125; // of a window's faults, in the correction
constexpr double most_correction = 8;
constexpr unsigned watched = 8;          // words, of which one tells what is used together
constexpr unsigned windows_to_watch = 4; // that an estimate must have for it
constexpr unsigned believed_idle = 2;    // windows without a touch, of what is expected to be hot
constexpr double cold_kept =
    7. / 8; // of what was seen of the coldest class, from one window to the next

} // namespace

graded::graded(const options& settings, unsigned) noexcept { configure(settings); }

void graded::configure(const options& settings) noexcept {
    stall_target_ = settings.stall_target;
    minute_seconds_ = settings.scaled_minute_seconds();
}

tier_id graded::tier_of_rate(int sixteenths) noexcept {
    const int cls = (sixteenths >> 4) + 1; // rounds down
    return tier_of(static_cast<unsigned>(std::clamp(cls, 0, static_cast<int>(classes) - 1)));
}

void graded::begin_window(const window_beginning& now) noexcept {
    early_ = now.early;
    relief_.begin_window(early_ ? now.wanted_bytes : 0, early_);
    if (early_) return;
    wanted_bytes_ = now.wanted_bytes;
    kept_.fill(0);
    set_budget();
    rates_.end_window();
    together_.end_window();
    for (co_access& one : by_region_) one.end_window();
    words_ = 0;
    sizes_.begin_window();
    find_inside();
    seen_ = used_ = born_ = 0;
    wanted_.fill(0);
    turn_ += 0x85ebca6bu;
}

// From what the last window wanted to move: the budget goes to the longest distances.
void graded::set_budget() noexcept {
    double left = move_budget * static_cast<double>(seen_);
    least_distance_ = 1;
    share_at_least_ = 1;
    for (unsigned distance = classes - 1; distance >= 1; --distance) {
        const auto wanted = static_cast<double>(wanted_[distance]);
        if (wanted > left) {
            least_distance_ = distance;
            share_at_least_ = left / wanted;
            return;
        }
        left -= wanted;
    }
}

// The same answer whenever it is asked in a window: a slot is asked about again before it moves. Where neighbours are
// used together, the same for all slots of the word.
bool graded::within_budget(unsigned distance, const word_facts& word,
                           unsigned slot) const noexcept {
    if (distance != least_distance_) return distance > least_distance_;
    const std::uintptr_t place = word.base / 8 + (block_of(word) == 1 ? slot : 0);
    return drawn(lot_of(place + turn_, 0), share_at_least_);
}

// By how many windows one outside of the class counts: above it 1 or 2, below it -1 or -2.
int graded::outside_by(int rate, tier_id at) const noexcept {
    const int end = static_cast<int>(class_of(at)) * octave; // of the class's octave
    const int upper = at == coldest ? cut_ : end;
    const int lower = std::max(end - octave, at == coldest ? end - octave : cut_);
    if (rate > upper + margin && at != hottest) return rate > upper + clearly ? 2 : 1;
    if (rate < lower - margin && at != coldest) return rate < lower - clearly ? -2 : -1;
    return 0;
}

// Those for which outside_by() is 0 with the least and with the most that a size counts for.
void graded::find_inside() noexcept {
    constexpr int all = 1 << 20;
    for (tier_id at = hottest; at <= coldest; ++at) {
        const int end = static_cast<int>(class_of(at)) * octave;
        const int upper = at == hottest ? all : (at == coldest ? cut_ : end) + margin;
        const int lower = at == coldest ? -all : std::max(end - octave, cut_) - margin;
        inside_[at] = {lower + sizes_.most(), upper + sizes_.least()};
    }
}

// How long the rate has been outside of the class, one window later. Only where the sizes that there are would
// give different answers the object's own is asked for, and of an object that is idle in windows 1, 2, 4, 8 ... only,
// unless it has been outside and may be no longer.
inline void graded::judge(word_facts& word, unsigned slot) noexcept {
    const tier_id at = word.tier[slot];
    std::uint16_t& state = word.state[slot];
    const int rate = rates_.sixteenths(state);
    if (rate >= inside_[at].least && rate <= inside_[at].most)
        state = static_cast<std::uint16_t>((state & 0xfff) | outside_zero << outside_shift);
    else
        judge_by_size(word, slot, rate);
}

void graded::judge_by_size(word_facts& word, unsigned slot, int rate) noexcept {
    const tier_id at = word.tier[slot];
    std::uint16_t& state = word.state[slot];
    // What has just left the first tier brings the windows that it was there; inside of its class that ends here.
    int outside = outside_of(state);
    int step = outside_by(rate - sizes_.least(), at);
    if (step != outside_by(rate - sizes_.most(), at)) {
        const bool settled = outside == 0 || outside == -outside_most;
        if (settled && word.idle[slot] != 0 && !std::has_single_bit(word.idle[slot])) return;
        step = outside_by(rate - size_of(word, slot), at);
    }
    if (step == 0 || (step > 0) != (outside >= 0)) outside = 0;
    outside = std::clamp(outside + step, -outside_most, outside_most);
    state = static_cast<std::uint16_t>(
        (state & 0xfff) | static_cast<unsigned>(outside + outside_zero) << outside_shift);
}

int graded::outside_of(std::uint16_t state) noexcept {
    const int kept = state >> outside_shift & 7;
    return kept == 0 ? 0 : kept - outside_zero;
}

// What the object's size counts for.
int graded::size_of(const word_facts& word, unsigned slot) noexcept {
    if ((word.unmoved >> slot & 1) != 0) return sizes_.of_pages();
    if (sizes_.alike()) return sizes_.middle();
    const int found = sizes_.of(word.about->size(slot));
    sizes_.note(found);
    return found;
}

// In one word of so many, in another of them in each window.
void graded::watch_neighbours(const word_facts& word) noexcept {
    if (((++words_ + turn_) & (watched - 1)) != 0) return;
    std::array<double, 64> residual, deviation;
    unsigned count = 0;
    for (std::uint64_t left = word.seen & ~word.unmoved; left != 0; left &= left - 1) {
        const auto slot = static_cast<unsigned>(std::countr_zero(left));
        if (touch_rate::windows(word.state[slot]) < windows_to_watch) continue;
        const double expected = rates_.expected(word.state[slot]);
        residual[count] = in_use(word, slot) - expected;
        deviation[count++] = rates_.deviation(word.state[slot]);
    }
    together_.note(residual.data(), deviation.data(), count);
    by_region_[region_of(word)].note(residual.data(), deviation.data(), count);
}

// Of those of a block that are in one tier.
void graded::join_neighbours(word_facts& word) noexcept {
    const unsigned block = block_of(word);
    for (std::uint64_t left = word.seen & ~word.unmoved; left != 0;) {
        std::array<touch_rate::sum, max_tiers> all{};
        std::uint64_t members = 0;
        for (unsigned i = 0; i < block && left != 0; ++i, left &= left - 1) {
            const auto slot = static_cast<unsigned>(std::countr_zero(left));
            if (touch_rate::windows(word.state[slot]) == 0) continue;
            members |= left & -left;
            rates_.add(all[word.tier[slot]], word.state[slot]);
        }
        for (; members != 0; members &= members - 1) {
            const auto slot = static_cast<unsigned>(std::countr_zero(members));
            word.state[slot] = rates_.joined(word.state[slot], all[word.tier[slot]]);
        }
    }
}

// The estimates of the word's objects, one window later.
void graded::count_windows(word_facts& word) noexcept {
    watch_neighbours(word);
    for (std::uint64_t left = word.seen; left != 0; left &= left - 1)
        count_window(word, static_cast<unsigned>(std::countr_zero(left)));
    if (block_of(word) > 1) join_neighbours(word);
    for (std::uint64_t left = word.seen & ~word.unmoved; left != 0; left &= left - 1) {
        const auto slot = static_cast<unsigned>(std::countr_zero(left));
        const tier_id at = word.tier[slot];
        if (at != first_tier) judge(word, slot);
        if (counts_kept_ && at != coldest && touch_rate::windows(word.state[slot]) != 0)
            count_kept(word, slot);
    }
}

void graded::count_kept(const word_facts& word, unsigned slot) noexcept {
    if ((word.movable >> slot & 1) == 0 || word.about->never_cold(slot)) return;
    const int rate = std::max(rates_.sixteenths(word.state[slot]) - size_of(word, slot), 0);
    const auto at = static_cast<std::size_t>(rate / cut_step);
    kept_[std::min(at, kept_.size() - 1)] += word.about->size(slot);
}

// What is on its way to the coldest class already counts. An object leaves its class when its rate is `margin` beyond it.
void graded::set_cut(const window_facts& facts) noexcept {
    const bool counted = counts_kept_;
    counts_kept_ = std::isfinite(facts.excess_bytes) && facts.tiers[coldest].can_leave &&
                   !facts.tiers[hottest].can_leave;
    if (!counts_kept_) {
        cut_ = 0;
    } else if (wanted_bytes_ == 0) {
        if (facts.excess_bytes < 0) cut_ = std::max(cut_ - octave / 8, 0);
    } else if (counted) {
        std::uint64_t below = 0;
        int end = 0; // of what is counted
        for (std::size_t i = 0; i + 1 < kept_.size() && below < wanted_bytes_; ++i) {
            below += kept_[i];
            end += cut_step;
        }
        cut_ = std::clamp(end + margin, cut_, highest_cut);
    }
}

void graded::count_window(word_facts& word, unsigned slot) noexcept {
    const tier_id at = word.tier[slot];
    const bool large = (word.unmoved >> slot & 1) != 0;
    const bool used = in_use(word, slot);
    std::uint16_t& state = word.state[slot];
    state &= static_cast<std::uint16_t>(~touched_early);
    // The window of its birth was not a whole one, and who makes an object touches it.
    const bool born = state == 0 && (large || at == first_tier);
    born_ += born;
    if (!born) {
        used_ += used;
        state = rates_.after(state, used, word.idle[slot]);
    }
    if (born || (at == first_tier && !large)) state = older(state);
}

// One more window in the first tier.
std::uint16_t graded::older(std::uint16_t state) noexcept {
    if (state >> outside_shift >= windows_to_prove) return state;
    return static_cast<std::uint16_t>(state + (1u << outside_shift));
}

// True if the object of the first tier, which nobody touched, goes to the coldest at once.
// What cannot go counts for nothing.
bool graded::relieves(const word_facts& word, unsigned slot) noexcept {
    if ((word.movable >> slot & 1) == 0 || word.about->never_cold(slot)) return false;
    const unsigned rank = relief::rank(false, word.quiet[slot]);
    if (!word.again) relief_.note(rank, word.about->size(slot));
    return (word.newborn >> slot & 1) == 0 && relief_.leaves(rank, word.base / 8 + slot);
}

// An object that nobody touched in this window becomes hotter only when its estimate rests on as many windows as an
// object of the first tier is watched for: what left that one for want of memory is hardly known. And not if it would
// be read back.
bool graded::may_become_hotter(const word_facts& word, unsigned slot) noexcept {
    if ((word.touched >> slot & 1) != 0) return true;
    return touch_rate::windows(word.state[slot]) >= windows_to_prove - 1 && !word.about->out(slot);
}

void graded::decide(word_facts& word, word_verdict& verdict) noexcept {
    const bool counts = !word.again && !early_;
    if (counts) {
        seen_ += static_cast<std::uint64_t>(std::popcount(word.seen));
        note_a_size(word);
        count_windows(word);
    }
    for (std::uint64_t left = word.seen; left != 0; left &= left - 1) {
        const auto slot = static_cast<unsigned>(std::countr_zero(left));
        const bool large = (word.unmoved >> slot & 1) != 0;
        const tier_id at = word.tier[slot];
        std::uint16_t& state = word.state[slot];
        const bool touched = (word.touched >> slot & 1) != 0;
        if (early_ && touched && !word.again) state |= touched_early;
        if (large) {
            tier_id role = wanted_tier(word, slot);
            if (role != hottest && word.about->never_cold(slot)) role = hottest;
            verdict.to[slot] = static_cast<std::uint8_t>(role);
            continue;
        }
        if (relief_.active() && at == first_tier && !touched && relieves(word, slot)) {
            verdict.send(slot, coldest);
            continue;
        }
        if (early_) continue;
        if (at == first_tier) {
            if (state >> outside_shift < windows_to_prove) {
                if (const tier_id prior = expected_tier(word, slot); prior != at)
                    verdict.send(slot, prior);
                continue;
            }
            if (touched && (word.expected_once >> slot & 1) != 0) continue;
        } else {
            const int outside = outside_of(state);
            if (outside > -outside_enough && outside < outside_enough) continue;
            // To read it back would cost more than a colder place gains.
            if (outside < 0 ? word.about->out(slot) : !may_become_hotter(word, slot)) continue;
        }
        tier_id target = wanted_tier(word, slot);
        if (target == at) continue;
        if (target != hottest && word.about->never_cold(slot)) {
            target = hottest;
            if (target == at) continue;
        }
        // Every object leaves the first tier once; the budget is for changes of mind.
        if (at != first_tier) {
            const unsigned distance = target > at ? target - at : at - target;
            if (!word.again && (word.movable >> slot & 1) != 0) ++wanted_[distance];
            if (!within_budget(distance, word, slot)) continue;
        }
        verdict.send(slot, target);
    }
}

// Of an object of the first tier that is not proven yet; that tier: nothing was expected, or what was seen tells
// more.
tier_id graded::expected_tier(const word_facts& word, unsigned slot) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << slot;
    if ((word.expected_hot & bit) != 0 && word.idle[slot] <= believed_idle) return hottest;
    const bool cold = (word.expected_cold & ~word.touched & bit) != 0;
    return cold && !word.about->never_cold(slot) ? coldest : first_tier;
}

// By touches per byte.
tier_id graded::wanted_tier(const word_facts& word, unsigned slot) noexcept {
    const std::uint16_t state = word.state[slot];
    if (touch_rate::windows(state) == 0) return hottest;
    const int rate = rates_.sixteenths(state) - size_of(word, slot);
    return rate < cut_ ? coldest : tier_of_rate(rate);
}

// Of one place in 64, another in each window: what sizes there are must be known where none is asked for.
void graded::note_a_size(const word_facts& word) noexcept {
    const unsigned slot = turn_ >> 26;
    if (((word.seen & ~word.unmoved) >> slot & 1) == 0) return;
    if (const std::size_t bytes = word.about->size(slot); bytes != 0) sizes_.note(sizes_.of(bytes));
}

// Of a page of the class: touches per byte are those of an object of the mean size with the class's middle rate, and
// they are a Poisson process.
double graded::assumed_hazard(tier_id id) const noexcept {
    const double middle = touch_rate::base_rate * std::exp2(static_cast<int>(class_of(id)) - 0.5);
    return -std::expm1(-middle * size_scale::page_bytes / sizes_.mean_bytes());
}

// The coldest class has no lower end, so what its pages were seen to do counts for ages that none had yet. Else
// pages would have to be watched at every age before they leave at it.
double graded::cold_hazard(const reuse_ages& ages, double assumed, bool counts) noexcept {
    if (counts) {
        cold_.exposed *= cold_kept;
        cold_.touched *= cold_kept;
        for (unsigned age = 0; age <= reuse_ages::oldest; ++age) {
            cold_.exposed += ages.exposed[age];
            cold_.touched += ages.touched[age];
        }
    }
    const double seen = (cold_.touched + assumed * fault_price::assumed_pages) /
                        (cold_.exposed + fault_price::assumed_pages);
    return std::min(assumed, seen);
}

// Faults that were none (a page still in a cache) and faults that no scan saw.
void graded::correct(double measured, double predicted) noexcept {
    if (measured == 0 || std::max(measured, predicted) < enough_faults) return;
    const double off = std::clamp(measured / std::max(predicted, 1.), 1. / 2, 2.);
    correction_ = std::clamp(correction_ * std::pow(off, weight_of_window), 1 / most_correction,
                             most_correction);
}

directives graded::end_of_window(const window_facts& facts) noexcept {
    relief_.end_window();
    std::uint64_t live_bytes = 0, live_objects = 0;
    for (const window_facts::tier_facts& tier : facts.tiers) {
        live_bytes += tier.live_bytes;
        live_objects += tier.live_objects;
    }
    sizes_.end_window(live_bytes, live_objects);
    if (!facts.early) {
        correct(static_cast<double>(facts.major_faults), correction_ * price_.faults());
        const double running =
            std::max(facts.running_seconds, least_running * facts.length_seconds);
        allowed_stall_ = stall_target_ * running;
        // Objects that no window sees, since nobody touched them, are among those that live.
        set_cut(facts);
        length_.end_window(used_, live_objects - std::min(live_objects, born_));
        current_.window_factor = length_.factor();
    }
    // What was never measured is taken for what others are.
    double usual = 0;
    unsigned measured = 0;
    for (const window_facts::tier_facts& tier : facts.tiers) {
        usual += tier.fault_seconds;
        measured += tier.fault_seconds > 0;
    }
    usual = measured == 0 ? usual_fault_seconds : usual / measured;
    price_.begin();
    double out_pages = 0;
    for (tier_id id = hottest; id <= coldest; ++id) {
        const window_facts::tier_facts& tier = facts.tiers[id];
        if (tier.ages == nullptr || !tier.can_leave) continue;
        out_pages += static_cast<double>(tier.out_bytes) / fault_price::page_bytes;
        const double seconds = tier.fault_seconds > 0 ? tier.fault_seconds : usual;
        double assumed = assumed_hazard(id);
        if (id == coldest) assumed = cold_hazard(*tier.ages, assumed, !facts.early);
        price_.learn(id, *tier.ages, {.assumed = assumed, .fault_seconds = seconds}, !facts.early);
    }
    price_.choose({.stall_seconds = allowed_stall_ / correction_,
                   .excess_pages = facts.excess_bytes / fault_price::page_bytes,
                   .out_pages = out_pages});
    current_.faults = correction_ * price_.faults();
    current_.stall_seconds = correction_ * price_.stall_seconds();
    if (!facts.early) {
        const double minutes = facts.length_seconds / minute_seconds_;
        current_.promotion_rate =
            facts.touched_pages == 0 || minutes <= 0
                ? 0
                : price_.faults() / static_cast<double>(facts.touched_pages) / minutes;
    }
    current_.pageout_allowed = false;
    for (tier_id id = hottest; id <= coldest; ++id)
        current_.pageout_allowed =
            current_.pageout_allowed || price_.lower_limit(id) != fault_price::never;
    return current_;
}

} // namespace obase::policy
