// SPDX-License-Identifier: MIT
#include "backend/hints.hpp"

#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace obase::backend {

namespace {

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

bool should_continue(const asker& may_continue) { return !may_continue || may_continue(); }

// Calls visit(interval) for every piece of at most piece_bytes until it returns false.
template <class Visit>
void for_each_piece(const intervals& set, Visit&& visit) {
    for (const interval& item : set.items()) {
        for (std::uintptr_t at = item.begin; at < item.end;) {
            const std::uintptr_t end =
                item.end - at > hints::piece_bytes ? at + hints::piece_bytes : item.end;
            if (!visit(interval{at, end})) return;
            at = end;
        }
    }
}

// Counts what of a piece is resident before and after.
class residency_meter {
  public:
    residency_meter(interval piece, bool counts) noexcept
        : piece_(piece), before_(counts ? resident() : 0) {}
    // Looks again: adds the pages that are not resident now, and returns how many bytes left.
    std::uint64_t look(intervals& gone) const {
        const std::size_t pages = piece_.bytes() / hints::page_bytes;
        unsigned char seen[hints::piece_bytes / hints::page_bytes];
        if (before_ == 0 || !os::read_residency(pointer(piece_.begin), pages, seen)) {
            gone.add(piece_.begin, piece_.end);
            return 0;
        }
        std::uint64_t now = 0;
        for (std::size_t i = 0; i < pages;) {
            const std::size_t first = i;
            while (i < pages && (seen[i] & 1) == (seen[first] & 1)) ++i;
            if ((seen[first] & 1) == 0)
                gone.add(piece_.begin + first * hints::page_bytes,
                         piece_.begin + i * hints::page_bytes);
            else
                now += (i - first) * hints::page_bytes;
        }
        return before_ > now ? before_ - now : 0;
    }

  private:
    std::uint64_t resident() const noexcept {
        return os::resident_in(pointer(piece_.begin), piece_.bytes());
    }
    interval piece_;
    std::uint64_t before_;
};

} // namespace

static_assert(hints::page_bytes == os::page_size);

// Counts a failure and says what follows from it. `refused` is the switch of the kind of hint, null
// for the calls on files. True: the call did its work.
bool hints::accepted(const char* call, int error, bool* refused) {
    if (error == 0) return true;
    ++totals_.failures;
    // The decision before the message: the text may find no memory, and another write-back after a
    // failed one would say that all is well.
    const char* consequence = nullptr;
    if (error == EIO || error == ENOSPC) {
        if (!totals_.stopped)
            consequence = "; no further hints are given, objects and the program go on";
        totals_.stopped = true;
    } else if (refused != nullptr && (error == EINVAL || error == EPERM || error == ENOSYS)) {
        if (!*refused) consequence = "; this hint is not given any more";
        *refused = true;
    }
    if (consequence != nullptr && say_)
        say_(std::string(call) + " failed: " + std::generic_category().message(error) +
             consequence);
    return false;
}

// Gives one kind of hint to anonymous memory.
hints::outcome hints::advise(kind which, const intervals& todo, const work& now) {
    outcome done;
    if (todo.empty() || !usable(which)) return done;
    struct call {
        os::advice advice;
        const char* name;
        std::uint64_t totals::* total;
    };
    static constexpr call calls[kind_count] = {
        {os::advice::cold, "MADV_COLD", &totals::cold_bytes},
        {os::advice::pageout, "MADV_PAGEOUT", &totals::page_out_bytes},
        {os::advice::hugepage, "MADV_HUGEPAGE", &totals::huge_bytes}};
    const call& chosen = calls[which];
    for_each_piece(todo, [&](interval piece) {
        if (!should_continue(now.may_continue)) return false;
        const residency_meter meter(piece, which == kind_page_out);
        const int error = os::advise(pointer(piece.begin), piece.bytes(), chosen.advice);
        if (accepted(chosen.name, error, &refused_[which])) {
            totals_.*chosen.total += piece.bytes();
            totals_.paged_out_bytes[now.id] += meter.look(done.gone);
            done.asked.add(piece.begin, piece.end);
        }
        return usable(which);
    });
    return done;
}

// One call per huge page: between two the collector may pause, and one that fails says nothing of the
// others.
void hints::collapse(const intervals& todo, tier_state& state, const work& now) {
    for (const interval& item : todo.items()) {
        for (std::uintptr_t at = item.begin; at < item.end; at += huge_bytes) {
            if (!should_continue(now.may_continue)) return;
            const int error = os::advise(pointer(at), huge_bytes, os::advice::collapse);
            // No free huge page, or none that the control group may have: the others fare no better.
            if (error == ENOMEM || error == EBUSY) return;
            if (error == EAGAIN) continue; // a page was in use by the kernel
            // EINVAL: this kernel cannot, or never for this memory.
            if (error == 0) totals_.collapsed_bytes += huge_bytes;
            state.collapsed.add(at, at + huge_bytes);
        }
    }
}

hints::outcome hints::page_out_tier(const tier_view& view, const intervals& todo, const work& now) {
    return view.files.empty() ? advise(kind_page_out, todo, now) : page_out_file(view, todo, now);
}

// File-backed pages: written, then unmapped, then dropped; see the header for the order.
hints::outcome hints::page_out_file(const tier_view& view, const intervals& todo, const work& now) {
    outcome done;
    if (todo.empty() || !usable(kind_page_out)) return done;
    const auto for_each_file_piece = [&](auto&& visit) {
        bool go = true;
        for (const tier_view::file_stretch& file : view.files) {
            if (file.fd < 0) continue;
            if (!go) return;
            intervals stretch;
            stretch.add(file.begin, file.end);
            for_each_piece(todo.common(stretch), [&](interval piece) {
                return go = should_continue(now.may_continue) && visit(piece, file.fd);
            });
        }
    };
    // Everything is started before anything is waited for, so that the device has a queue.
    for_each_file_piece([&](interval piece, int fd) {
        const std::uint64_t offset = piece.begin - view.file_base;
        accepted("write-back of the COLD file",
                 os::write_back_file(fd, offset, piece.bytes(), false));
        return !totals_.stopped;
    });
    if (totals_.stopped) return done;
    for_each_file_piece([&](interval piece, int fd) {
        const std::uint64_t offset = piece.begin - view.file_base;
        if (!accepted("write-back of the COLD file",
                      os::write_back_file(fd, offset, piece.bytes(), true))) {
            return !totals_.stopped; // never drop what may not have been written
        }
        totals_.written_bytes += piece.bytes();
        const residency_meter meter(piece, true);
        if (!accepted("MADV_PAGEOUT",
                      os::advise(pointer(piece.begin), piece.bytes(), os::advice::pageout),
                      &refused_[kind_page_out])) {
            return usable(kind_page_out);
        }
        if (accepted("posix_fadvise of the COLD file",
                     os::drop_file_cache(fd, offset, piece.bytes()))) {
            totals_.page_out_bytes += piece.bytes();
            totals_.paged_out_bytes[now.id] += meter.look(done.gone);
            done.asked.add(piece.begin, piece.end);
        }
        return usable(kind_page_out);
    });
    return done;
}

// Of one page that left memory and is still out: how long it takes to come back. 0: none was found.
double hints::fault_time(tier_state& state) {
    const auto& items = state.paged_out.items();
    if (items.empty()) return 0;
    const interval& item = items[random_() % items.size()];
    const std::uintptr_t at = item.begin + random_() % (item.bytes() / page_bytes) * page_bytes;
    if (os::resident_in(pointer(at), page_bytes) != 0) return 0;
    const std::uint64_t began = os::monotonic_ns();
    const int error = os::advise(pointer(at), page_bytes, os::advice::populate);
    const std::uint64_t ended = os::monotonic_ns();
    no_populate_ = error == EINVAL;
    if (error != 0) return 0;
    intervals back;
    back.add(at, at + page_bytes);
    state.paged_out = state.paged_out.without(back);
    return static_cast<double>(ended - began) * 1e-9;
}

void hints::measure_faults(tier_state& state, policy::tier_id id) {
    if (no_populate_ || totals_.paged_out_bytes[id] == 0) return;
    std::array<double, fault_samples> seconds;
    for (double& one : seconds) one = fault_time(state);
    std::sort(seconds.begin(), seconds.end());
    const double median = std::min(seconds[fault_samples / 2], slowest_fault);
    if (median == 0) return;
    double& known = totals_.fault_seconds[id];
    known = known == 0 ? median : known + (median - known) * fault_weight;
}

// What stayed this time, as it did the last two times, one window after the other; what was in use in between begins anew.
// Else it would be asked for in each window, in vain: a control group without swap, private pages of a file that was
// frozen at a fork.
intervals hints::given_up(tier_state& state, const intervals& stayed) {
    static_assert(most_tries == std::tuple_size_v<decltype(state.stayed)> + 1);
    const intervals for_good = stayed.common(state.stayed[1]);
    const intervals again = stayed.common(state.stayed[0]);
    state.stayed[0] = stayed.without(again).without(for_good);
    state.stayed[1] = again;
    return for_good;
}

void hints::hint_reclaimable(const tier_view& view, tier_state& state, const work& now) {
    const intervals extents = view.extents.rounded_in(page_bytes);
    const intervals touched = view.touched.rounded_out(page_bytes);
    const intervals changed = touched.united(view.filled).rounded_out(page_bytes);

    // Changed memory is not in the state in which it was advised; memory that left the heap is
    // forgotten.
    state.advised = state.advised.common(extents).without(changed);
    state.paged_out = state.paged_out.common(extents).without(changed);

    if (now.switches.page_out) {
        measure_faults(state, now.id);
        const intervals todo = view.leaving.common(extents).without(state.paged_out);
        const outcome done = page_out_tier(view, todo, now);
        state.paged_out = state.paged_out.united(done.gone).united(
            given_up(state, done.asked.without(done.gone)));
        state.advised = state.advised.united(done.asked); // paged out is colder than cold
    }
    if (now.advises_cold()) {
        state.advised =
            state.advised.united(advise(kind_cold, extents.without(state.advised), now).asked);
    }
}

void hints::hint_promoted(const tier_view& view, tier_state& state, const work& now) {
    const intervals extents = view.extents.rounded_in(huge_bytes);
    state.huge = state.huge.common(extents);
    if (!now.switches.huge) return;
    state.huge = state.huge.united(advise(kind_huge, extents.without(state.huge), now).asked);
    state.collapsed = state.collapsed.common(extents);
    collapse(state.huge.without(state.collapsed), state, now);
}

// Only what this window's scan saw is known to be alive and cold.
void hints::hint_large(const window_view& window, const hint_switches& switches,
                       const asker& may_continue) {
    for (const large_view& seen : window.large) {
        if (seen.touched || !window.tiers[seen.role].role.reclaimable) { // in use
            large_.erase(seen.begin);
            continue;
        }
        large_state& state = large_[seen.begin];
        if (state.bytes != seen.bytes) state = {}; // another object at the same address
        state.bytes = seen.bytes;
        state.seen_in = window_;
        hint_large_object(seen, state,
                          {seen.role, window.tiers[seen.role].role, switches, may_continue});
    }
    std::erase_if(large_, [&](const auto& entry) {
        return window_ - entry.second.seen_in >= large_memory_windows;
    });
}

void hints::hint_large_object(const large_view& seen, large_state& state, const work& now) {
    intervals object;
    object.add(seen.begin, seen.begin + seen.bytes);
    object = object.rounded_in(page_bytes);
    if (now.switches.page_out && seen.leaving && !state.paged_out) {
        const outcome done = advise(kind_page_out, object, now);
        const bool asked = done.asked.bytes() == object.bytes();
        if (asked) ++state.tries;
        state.paged_out = done.gone.bytes() == object.bytes() || state.tries == most_tries;
        state.advised = state.advised || asked;
    }
    if (now.advises_cold() && !state.advised)
        state.advised = advise(kind_cold, object, now).asked.bytes() == object.bytes();
}

// The record of advice only saves repeated calls.
void hints::forget_all() noexcept {
    for (tier_state& state : tiers_)
        for (intervals* set : {&state.advised, &state.paged_out, &state.stayed[0], &state.stayed[1],
                               &state.huge, &state.collapsed})
            set->clear();
    large_.clear();
}

// Out of memory for the bookkeeping.
void hints::forget() noexcept {
    ++totals_.failures;
    forget_all();
}

void hints::skip_window() noexcept {
    forget_all();
    ++window_;
}

void hints::page_out(policy::tier_id id, const tier_view& view, const options& settings,
                     const asker& may_continue) noexcept try {
    const hint_switches switches = hint_switches_of(settings);
    if (totals_.stopped || !switches.page_out) return;
    const outcome done = page_out_tier(view, view.leaving.rounded_in(page_bytes),
                                       {id, view.role, switches, may_continue});
    tiers_[id].paged_out = tiers_[id].paged_out.united(done.gone);
    tiers_[id].advised = tiers_[id].advised.united(done.asked);
} catch (const std::bad_alloc&) {
    forget();
}

void hints::after_window(const window_view& window, const options& settings,
                         const asker& may_continue) noexcept try {
    const hint_switches switches = hint_switches_of(settings);
    ++window_;
    if (totals_.stopped) {
        large_.clear();
        return;
    }
    for (policy::tier_id id = 0; id < window.tiers.size(); ++id)
        if (const tier_view& view = window.tiers[id]; view.role.reclaimable)
            hint_reclaimable(view, tiers_[id], {id, view.role, switches, may_continue});
    hint_large(window, switches, may_continue);
    for (policy::tier_id id = 0; id < window.tiers.size(); ++id)
        if (const tier_view& view = window.tiers[id]; view.role.promoted_to)
            hint_promoted(view, tiers_[id], {id, view.role, switches, may_continue});
} catch (const std::bad_alloc&) {
    forget();
}

} // namespace obase::backend
