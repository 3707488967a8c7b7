// SPDX-License-Identifier: MIT
#include "backend/hints.hpp"

#include "os/memory.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

namespace obase::backend {

namespace {

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

bool may_go_on(const hints::asker& go_on) { return !go_on || go_on(); }

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

// Gives one kind of hint to anonymous memory and returns the part that was accepted.
intervals hints::advise(kind which, const intervals& todo, const asker& go_on) {
    intervals done;
    if (todo.empty() || !usable(which)) return done;
    struct call {
        os::advice advice;
        const char* name;
        std::uint64_t hint_totals::* total;
    };
    static constexpr call calls[kind_count] = {
        {os::advice::cold, "MADV_COLD", &hint_totals::cold_bytes},
        {os::advice::pageout, "MADV_PAGEOUT", &hint_totals::page_out_bytes},
        {os::advice::hugepage, "MADV_HUGEPAGE", &hint_totals::huge_bytes}};
    const call& chosen = calls[which];
    for_each_piece(todo, [&](interval piece) {
        if (!may_go_on(go_on)) return false;
        const int error = os::advise(pointer(piece.begin), piece.bytes(), chosen.advice);
        if (accepted(chosen.name, error, &refused_[which])) {
            totals_.*chosen.total += piece.bytes();
            done.add(piece.begin, piece.end);
        }
        return usable(which);
    });
    return done;
}

// One call per huge page: between two the collector may pause, and one that fails says nothing of the
// others.
void hints::collapse(const intervals& todo, const asker& go_on) {
    for (const interval& item : todo.items()) {
        for (std::uintptr_t at = item.begin; at < item.end; at += huge_bytes) {
            if (!may_go_on(go_on)) return;
            const int error = os::advise(pointer(at), huge_bytes, os::advice::collapse);
            // No free huge page, or none that the control group may have: the others fare no better.
            if (error == ENOMEM || error == EBUSY) return;
            if (error == EAGAIN) continue; // a page was in use by the kernel
            // EINVAL: this kernel cannot, or never for this memory.
            if (error == 0) totals_.collapsed_bytes += huge_bytes;
            collapsed_.add(at, at + huge_bytes);
        }
    }
}

// File-backed pages: written, then unmapped, then dropped; see the header for the order.
intervals hints::page_out_file(const heap_view& view, const intervals& todo, const asker& go_on) {
    intervals done;
    if (todo.empty() || !usable(kind_page_out)) return done;
    const auto for_each_file_piece = [&](auto&& visit) {
        bool go = true;
        for (const heap_view::file_stretch& file : view.files) {
            if (file.fd < 0) continue;
            if (!go) return;
            intervals stretch;
            stretch.add(file.begin, file.end);
            for_each_piece(todo.common(stretch), [&](interval piece) {
                return go = may_go_on(go_on) && visit(piece, file.fd);
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
        if (!accepted("MADV_PAGEOUT",
                      os::advise(pointer(piece.begin), piece.bytes(), os::advice::pageout),
                      &refused_[kind_page_out])) {
            return usable(kind_page_out);
        }
        if (accepted("posix_fadvise of the COLD file",
                     os::drop_file_cache(fd, offset, piece.bytes()))) {
            totals_.page_out_bytes += piece.bytes();
            done.add(piece.begin, piece.end);
        }
        return usable(kind_page_out);
    });
    return done;
}

void hints::hint_cold_heap(const heap_view& view, const hint_switches& switches,
                           bool page_out_allowed, const asker& go_on) {
    const intervals extents = view.extents.rounded_in(page_bytes);
    const intervals touched = view.touched.rounded_out(page_bytes);
    const intervals changed = touched.united(filled_).rounded_out(page_bytes);

    // What changed is not in the state in which it was advised; what left the heap is forgotten.
    advised_ = advised_.common(extents).without(changed);
    paged_out_ = paged_out_.common(extents).without(changed);

    if (switches.page_out && page_out_allowed) {
        const intervals todo = extents.without(paged_out_).without(touched);
        const intervals done = view.files.empty() ? advise(kind_page_out, todo, go_on)
                                                  : page_out_file(view, todo, go_on);
        paged_out_ = paged_out_.united(done);
        advised_ = advised_.united(done); // paged out is colder than cold
    }
    if (switches.cold) {
        advised_ = advised_.united(advise(kind_cold, extents.without(advised_), go_on));
    }
}

void hints::note_filled(const void* begin, std::size_t bytes) noexcept try {
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    filled_.add(at, at + bytes);
} catch (const std::bad_alloc&) {
    forget();
}

void hints::note_large(const void* object, std::size_t bytes, bool cold) noexcept try {
    large_state& state = large_[reinterpret_cast<std::uintptr_t>(object)];
    // Another object at the same address, or one that was used again: nothing is advised yet.
    if (!cold || state.bytes != bytes) state.advised = state.paged_out = false;
    state.bytes = bytes;
    state.cold = cold;
    state.seen_in = window_;
} catch (const std::bad_alloc&) {
    forget();
}

// Large objects lie in page runs of their own, so whole pages are theirs.
void hints::hint_large(const hint_switches& switches, bool page_out_allowed, const asker& go_on) {
    for (auto entry = large_.begin(); entry != large_.end();) {
        auto& [begin, state] = *entry;
        if (window_ - state.seen_in >= large_memory_windows || (!state.cold && !state.advised)) {
            entry = large_.erase(entry);
            continue;
        }
        ++entry;
        // Only what this window's scan saw is known to be alive and cold.
        if (!state.cold || state.seen_in != window_) continue;
        intervals object;
        object.add(begin, begin + state.bytes);
        object = object.rounded_in(page_bytes);
        if (switches.page_out && page_out_allowed && !state.paged_out) {
            state.paged_out = advise(kind_page_out, object, go_on).bytes() == object.bytes();
            state.advised = state.advised || state.paged_out;
        }
        if (switches.cold && !state.advised) {
            state.advised = advise(kind_cold, object, go_on).bytes() == object.bytes();
        }
    }
}

// What is remembered only spares repeated calls.
void hints::forget_all() noexcept {
    for (intervals* set : {&filled_, &advised_, &paged_out_, &huge_, &collapsed_}) set->clear();
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

void hints::after_window(const heap_view& hot, const heap_view& cold, const hint_switches& switches,
                         bool page_out_allowed, const asker& go_on) noexcept try {
    if (!totals_.stopped) {
        hint_cold_heap(cold, switches, page_out_allowed, go_on);
        hint_large(switches, page_out_allowed, go_on);
        const intervals hot_extents = hot.extents.rounded_in(huge_bytes);
        huge_ = huge_.common(hot_extents);
        if (switches.huge) {
            huge_ = huge_.united(advise(kind_huge, hot_extents.without(huge_), go_on));
            collapsed_ = collapsed_.common(hot_extents);
            collapse(huge_.without(collapsed_), go_on);
        }
    } else {
        large_.clear();
    }
    filled_.clear();
    ++window_;
} catch (const std::bad_alloc&) {
    forget();
    ++window_;
}

} // namespace obase::backend
