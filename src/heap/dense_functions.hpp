// SPDX-License-Identifier: MIT
//
// dense_heap: its functions. For the files that instantiate it: dense.cpp, and tests for their platforms.
#pragma once

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#include "heap/dense.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"

namespace obase::heap {

namespace dense_detail {

inline constexpr std::uint64_t one_object = std::uint64_t{1} << 32;
inline constexpr std::uint64_t bytes_mask = one_object - 1;

constexpr std::size_t commit_chunk(std::size_t committed) noexcept {
    return std::clamp<std::size_t>(round_up(committed / 8, 2U << 20), 2U << 20, 64U << 20);
}
// File storage is taken in small steps: a chunk that is not used is disk that others lack.
inline constexpr std::size_t file_chunk = 2U << 20;

} // namespace dense_detail

template <class P>
int dense_heap<P>::create(char* base, std::size_t bytes, const char* directory,
                          poisoning poison_freed, const char** what) noexcept {
    base_ = base;
    bytes_ = bytes;
    poison_ = poison_freed;
    std::fill(std::begin(open_), std::end(open_), no_run);
    std::fill(std::begin(open_middle_), std::end(open_middle_), no_run);
    std::fill(std::begin(open_long_), std::end(open_long_), no_run);
    std::fill(std::begin(born_), std::end(born_), no_run);
    std::fill(std::begin(born_middle_), std::end(born_middle_), no_run);
    const std::size_t runs = bytes >> run_shift;
    *what = "reserving side tables";
    if (!runs_.reserve(runs) || !starts_.reserve(runs * words_per_run) ||
        !long_starts_.reserve(runs * long_words_per_run) ||
        !middle_starts_.reserve(runs * places_per_run) || !freed_.reserve(runs * words_per_run) ||
        !free_.reserve((runs + 63) / 64) || !owners_memory_.reserve(1)) {
        return ENOMEM;
    }
    if (directory == nullptr) return 0;
    *what = "the name of the directory";
    if (std::strlen(directory) >= sizeof directory_) return ENAMETOOLONG;
    std::strcpy(directory_, directory);
    os::machine here;
    strict_commit_ = os::read_machine(&here) && here.overcommit_memory == 2;
    *what = "opening an unnamed file";
    if (const int error = os::open_temporary_file(directory, &fd_)) return error;
    // Not every file system has what we need: try all of it on one page.
    *what = "allocating file space";
    if (const int error = os::grow_file(fd_, os::page_size)) return error;
    if (const int error = os::allocate_file(fd_, 0, os::page_size)) return error;
    *what = "giving back file space";
    if (const int error = os::punch_file(fd_, 0, os::page_size)) return error;
    return 0;
}

template <class P>
void dense_heap<P>::destroy() noexcept {
    if (hides(poison_)) asan::show(base_, runs() << run_shift);
    if (fd_ >= 0) os::close_file(fd_);
    fd_ = -1;
    for (; frozen_count_ != 0; --frozen_count_) {
        if (frozen_[frozen_count_ - 1].fd >= 0) os::close_file(frozen_[frozen_count_ - 1].fd);
    }
    runs_.release();
    starts_.release();
    long_starts_.release();
    middle_starts_.release();
    freed_.release();
    free_.release();
    owners_.store_relaxed(nullptr);
    owners_memory_.release();
}

// Where objects end.

// The fill mark is read before the marks, and allocate() writes it after them: a thread that sees a
// fill mark beyond the end of the object also sees the mark that ends it. When the fill mark just
// reaches the object's end it is the end.
template <class P>
std::size_t dense_heap<P>::size_of(const void* object) const noexcept {
    const std::size_t run = run_of(object);
    const std::size_t offset = offset_in(run, object);
    const std::size_t fill = runs_[run].fill.load_acquire();
    return beginnings_of(run).next(offset, fill) - offset;
}

template <class P>
std::size_t dense_heap<P>::size_of_racy(const void* object) const noexcept {
    if (run_number(object) >= frontier_.load_acquire()) return 0;
    const std::size_t run = run_of(object);
    const std::size_t offset = offset_in(run, object);
    if (runs_[run].status.load_acquire() == dense_run::state::unused) return 0;
    const std::size_t fill = runs_[run].fill.load_acquire(); // as in size_of
    if (offset >= fill) return 0;
    const auto begin = beginnings_of(run);
    return begin.test(offset) ? begin.next(offset, fill) - offset : 0;
}

// Filling.

template <class P>
void* dense_heap<P>::allocate(std::size_t size, unsigned set) noexcept {
    if (size > max_dense_size) return nullptr;
    const std::uint32_t& number = open_for(size, set);
    const bool fits = number != no_run && runs_[number].fill.load_relaxed() + size <=
                                              length_of_run(number) << run_shift;
    if (!fits) {
        const std::lock_guard hold(lock_);
        if (!(size > max_small_size ? open_long_run_for(size, set) : open_run_for(size, set)))
            return nullptr;
    }
    return fill(number, size);
}

// Precondition: there is room in the run, which the caller alone fills.
template <class P>
char* dense_heap<P>::fill(std::uint32_t number, std::size_t size) noexcept {
    dense_run& run = runs_[number];
    const std::uint32_t gap = run.fill.load_relaxed();
    const auto begin = static_cast<std::uint32_t>(gap + skipped(number, gap, size));
    const auto end = static_cast<std::uint32_t>(begin + size);
    const beginnings of = beginnings_of(number);
    // Marks that an undo left behind lie in [gap, high). No thread can be looking past the one at
    // `gap`.
    const std::uint32_t marked = std::min(end, run.high);
    for (std::size_t at = of.next(gap, marked); at < marked; at = of.next(at, marked)) of.clear(at);
    of.set(begin);
    if (gap != begin) of.set_gap(gap);
    run.live.fetch_add_relaxed(dense_detail::one_object + size);
    run.fill.store_release(end); // pairs with size_of
    run.high = std::max(run.high, end);
    return memory_of(number) + begin;
}

// How much is left out before an object that is put there. There is room behind it as there is at once: where an object
// of n pages lies on n + 1 within the run, the last n of them begin at the next page.
template <class P>
std::size_t dense_heap<P>::skipped(std::uint32_t run, std::size_t at,
                                   std::size_t size) const noexcept {
    // A long run may lie where a middle one was.
    if (leaves_gaps_.load_relaxed() == 0 || !runs_[run].middle.load_relaxed() ||
        runs_[run].length.load_relaxed() != 0)
        return 0;
    const std::size_t in_page = at % os::page_size;
    if (in_page + size <= round_up(size, os::page_size)) return 0;
    const std::size_t rest = os::page_size - in_page;
    return rest <= most_skipped ? rest : 0;
}

// Once, when nothing is put into the run any more.
template <class P>
void dense_heap<P>::note_gaps(std::size_t number) noexcept {
    dense_run& run = runs_[number];
    if (!fits_pages_ || !run.middle.load_relaxed() || run.length.load_relaxed() != 0) return;
    const beginnings of = beginnings_of(number);
    const std::size_t fill = run.fill.load_relaxed();
    std::size_t bytes = 0;
    for (std::size_t at = 0, next = 0; at < fill; at = next) {
        next = of.next(at, fill);
        if (!of.test(at)) bytes += next - at;
    }
    run.gaps.store_relaxed(static_cast<std::uint8_t>(bytes / large_granule));
}

template <class P>
std::size_t dense_heap<P>::gap_bytes() const noexcept {
    const std::size_t end = frontier_.load_acquire();
    std::size_t bytes = 0;
    for (std::size_t i = 0; fits_pages_ && i < end; ++i)
        if (runs_[i].status.load_relaxed() == dense_state::sealed) {
            const std::size_t live = live_now(i) & dense_detail::bytes_mask;
            bytes += with_gaps(i, live) - live;
        }
    return bytes;
}

// Births.

// Zero bytes, and only where births have been allowed: there are many heaps, and few have births.
template <class P>
void dense_heap<P>::make_owners() noexcept {
    if (owners_.load_acquire() == nullptr && owners_memory_.commit_to(1))
        owners_.store_release(owners_memory_.data()); // pairs with born_at_hand()
}

// A fork stops all threads.
template <class P>
void* dense_heap<P>::give_way(row& its) noexcept {
    owners_.load_acquire()->take_wanted(its);
    return left_without(its);
}

// In a run of the thread's own from here on, if it can have one; else in one that threads share.
template <class P>
void* dense_heap<P>::allocate_born_elsewhere(std::size_t size, unsigned set,
                                             bool* opened) noexcept {
    if (size > max_small_size || !births_on_.load_relaxed()) return nullptr;
    owners* const all = owners_.load_acquire();
    const bool inside = all != nullptr && all->enter();
    void* object = nullptr;
    {
        const std::lock_guard hold(lock_);
        row* const its = inside ? &all->of_number(thread_number<P>::of_caller()) : nullptr;
        const bool middle = size >= least_middle_size;
        if (its != nullptr && all->owner_for_caller() != 0 &&
            (its->own.run[middle] == 0 || its->own.set[middle] == set)) {
            std::uint32_t open = its->own.run[middle] - 1; // 0 - 1 is no_run
            object = allocate_born_in(open, size, set, dense_state::born, opened);
            its->own.run[middle] = open + 1;
            its->own.set[middle] = static_cast<std::uint8_t>(set);
        } else {
            object = allocate_born_in(born_for(size, set), size, set, dense_state::open, opened);
        }
    }
    if (inside) all->leave();
    return object;
}

// Of what follows, that takes runs from the free ones and gives them back holds lock_.

template <class P>
void* dense_heap<P>::allocate_born_in(std::uint32_t& open, std::size_t size, unsigned set,
                                      dense_state filled, bool* opened) noexcept {
    const bool middle = size >= least_middle_size;
    const bool fits = open != no_run && runs_[open].fill.load_relaxed() + size <= run_bytes;
    if (!fits) {
        if (!open_born_run(open, middle, set, filled)) {
            births_refused_ += births_allowed_.load_relaxed();
            births_allowed_.store_relaxed(0); // each try would take system calls
            births_on_.store_relaxed(false);
            return nullptr;
        }
        *opened = true;
    }
    if (filled == dense_state::born)
        return fill_own(open, middle, runs_[open].fill.load_relaxed(), size);
    note_birth(runs_[open]);
    return fill(open, size);
}

// Not a run that is just going back, and none over a frozen file: to take that is the collector's.
template <class P>
bool dense_heap<P>::open_born_run(std::uint32_t& open, bool middle, unsigned set,
                                  dense_state filled) noexcept {
    const os::no_cancellation to_the_end; // of calls for the file; this is the program's thread
    const std::uint64_t allowed = births_allowed_.load_relaxed();
    if (allowed < run_bytes) return false;
    std::size_t number = lowest_free();
    if (number >= returning_ && number < returning_end_) number = SIZE_MAX;
    if (open != no_run) seal_born(std::exchange(open, no_run));
    if (!open_run(open, middle, set, number, filled)) return false;
    if (allowed != UINT64_MAX) births_allowed_.store_relaxed(allowed - run_bytes);
    return true;
}

template <class P>
void dense_heap<P>::seal_born(std::uint32_t number) noexcept {
    dense_run& run = runs_[number];
    run.births.fetch_or_relaxed(static_cast<std::uint8_t>(birth_news::memory));
    births_in_memory_.fetch_add_relaxed(run_bytes);
    news_from_ = std::min<std::size_t>(news_from_, number);
    if (run.status.load_relaxed() == dense_state::born) {
        run.high = run.fill.load_relaxed();
        // Before the state. Pairs with live_now().
        run.live.fetch_add_acq_rel(handed_out_of(number));
    }
    seal(number);
}

template <class P>
bool dense_heap<P>::take_birth(std::size_t number, std::uint8_t what) noexcept {
    const std::lock_guard hold(lock_);
    dense_run& run = runs_[number];
    if ((run.births.load_relaxed() & what) == 0) return false;
    run.births.fetch_and_relaxed(static_cast<std::uint8_t>(~what));
    if (what == static_cast<std::uint8_t>(birth_news::memory))
        births_in_memory_.fetch_sub_relaxed(run_bytes);
    return true;
}

template <class P>
bool dense_heap<P>::open_run_for(std::size_t size, unsigned set) noexcept {
    std::size_t number = lowest_free();
    if (number == SIZE_MAX && adoptable_) {
        adopt_free_runs();
        number = lowest_free();
    }
    return open_run(open_for(size, set), size >= least_middle_size, set, number, dense_state::open);
}

// The free run with that number; SIZE_MAX: one that was never used.
template <class P>
bool dense_heap<P>::open_run(std::uint32_t& open, bool middle, unsigned set, std::size_t number,
                             dense_state filled) noexcept {
    const bool reused = number != SIZE_MAX;
    if (!reused) {
        number = frontier_.load_relaxed();
        if (((number + 1) << run_shift) > committed_ && !grow()) return false;
    }
    dense_run& run = runs_[number];
    if (reused) {
        if (!make_ready(number)) return false;
        set_free_bit(number, false);
        forget_beginnings(number, middle);
        forget_frees(number);
    } else {
        run.file.store_relaxed(file_.load_relaxed());
        run.shared = file_backed();
        frontier_.store_release(number + 1);
    }
    if (open != no_run) seal(open);
    run.fill.store_relaxed(0);
    run.high = 0;
    run.gaps.store_relaxed(0);
    run.middle.store_release(middle);
    run.set = static_cast<std::uint8_t>(set);
    run.returned = false;
    if (hides(poison_)) asan::hide(memory_of(number), run_bytes);
    run.status.store_release(filled);
    open = static_cast<std::uint32_t>(number);
    return true;
}

// Those of objects that were there before, in the form that the next ones have: of the other form no page is touched.
template <class P>
void dense_heap<P>::forget_beginnings(std::size_t number, bool middle) noexcept {
    if (middle) {
        for (std::size_t i = 0; i < places_per_run; ++i)
            middle_starts_[number * places_per_run + i].store_relaxed(0);
    } else {
        for (std::size_t i = 0; i < words_per_run; ++i)
            starts_[number * words_per_run + i].store_relaxed(0);
    }
}

// Storage first: from then on a write to the run cannot fail.
template <class P>
bool dense_heap<P>::make_ready(std::size_t number) noexcept {
    dense_run& run = runs_[number];
    if (!file_backed() || !run.returned) return true;
    if (os::allocate_file(fd_, number << run_shift, run_bytes) != 0) return false;
    run.returned = false;
    return true;
}

// Uncommitted memory is zero, and nothing of this run is freed meanwhile.
template <class P>
void dense_heap<P>::forget_frees(std::size_t number) noexcept {
    const std::size_t first = number * words_per_run;
    if (freed_.committed(first + words_per_run - 1))
        for (std::size_t i = 0; i < words_per_run; ++i) freed_[first + i].store_relaxed(0);
}

template <class P>
bool dense_heap<P>::open_long_run_for(std::size_t size, unsigned set) noexcept {
    const std::size_t least = (size + run_bytes - 1) >> run_shift;
    const std::size_t usual = std::max(least, long_run_bytes >> run_shift);
    // Of the usual length three quarters are left at least when a run is full: so long are the gaps. Where
    // there is no more memory, or little storage, what is just long enough will do.
    return open_long_run(set, usual, false) ||
           (usual > least && open_long_run(set, usual - 1, false)) ||
           open_long_run(set, usual, true) || (usual > least && open_long_run(set, least, true));
}

template <class P>
bool dense_heap<P>::open_long_run(unsigned set, std::size_t length, bool may_grow) noexcept {
    const std::size_t never_used = frontier_.load_relaxed();
    const std::size_t head = free_neighbours(length, may_grow);
    if (head == SIZE_MAX || !long_starts_.commit_to((head + length) * long_words_per_run))
        return false;
    pacer goes_on;
    for (std::size_t i = head; i < head + length; ++i) {
        // What is dead in it would stay in memory where the long run is not filled.
        if (i < never_used && !runs_[i].returned && return_memory(i, 1, goes_on) == 0)
            runs_[i].returned = true;
        if (!make_ready(i)) return false;
    }
    if (open_long_[set] != no_run) seal(open_long_[set]);
    for (std::size_t i = head; i < head + length; ++i) {
        set_free_bit(i, false);
        for (std::size_t word = 0; word < long_words_per_run; ++word)
            long_starts_[i * long_words_per_run + word].store_relaxed(0);
        forget_frees(i);
        dense_run& run = runs_[i];
        run.fill.store_relaxed(0);
        run.high = 0;
        run.gaps.store_relaxed(0);
        run.set = static_cast<std::uint8_t>(set);
        run.returned = false;
        run.evacuating = false;
        run.before.store_release(static_cast<std::uint16_t>(i - head));
        if (i != head) run.status.store_release(dense_run::state::joined);
    }
    if (hides(poison_)) asan::hide(memory_of(head), length << run_shift);
    runs_[head].length.store_release(static_cast<std::uint16_t>(length));
    runs_[head].status.store_release(dense_run::state::open);
    open_long_[set] = static_cast<std::uint32_t>(head);
    return true;
}

// The lowest `count` neighbouring runs that are free. If the heap may grow, the last of them perhaps such as
// were never used: these are free runs like others then. SIZE_MAX: there is no room.
template <class P>
std::size_t dense_heap<P>::free_neighbours(std::size_t count, bool may_grow) noexcept {
    std::size_t at_end = 0;
    std::size_t found = stretch_of_free(count, &at_end);
    if (found == SIZE_MAX && adoptable_) {
        adopt_free_runs();
        found = stretch_of_free(count, &at_end);
    }
    if (found != SIZE_MAX || !may_grow) return found;
    const std::size_t first = frontier_.load_relaxed() - at_end;
    for (std::size_t number = first + at_end; number < first + count; ++number) {
        if (((number + 1) << run_shift) > committed_ && !grow()) return SIZE_MAX;
        dense_run& run = runs_[number];
        run.file.store_relaxed(file_.load_relaxed());
        run.shared = file_backed();
        run.returned = false;
        frontier_.store_release(number + 1);
        set_free_bit(number, true);
    }
    return first;
}

// *at_end: how many runs before the frontier are free.
template <class P>
std::size_t dense_heap<P>::stretch_of_free(std::size_t count, std::size_t* at_end) const noexcept {
    const std::size_t end = frontier_.load_relaxed();
    std::size_t length = 0; // of free runs right before `run`
    std::size_t run = free_runs_ == 0 ? end : lowest_word_ * 64;
    while (run < end && length < count) {
        const std::uint64_t word = free_[run / 64] >> (run % 64);
        if ((word & 1U) != 0) {
            const auto more = static_cast<unsigned>(std::countr_one(word));
            length += more;
            run += more;
            continue;
        }
        length = 0;
        run = word == 0 ? (run / 64 + 1) * 64 : run + static_cast<unsigned>(std::countr_zero(word));
    }
    *at_end = run == end ? length : 0;
    return length >= count ? run - length : SIZE_MAX;
}

// Nothing more is put into the run.
template <class P>
void dense_heap<P>::seal(std::uint32_t number) noexcept {
    dense_run& run = runs_[number];
    if (const std::size_t length = run.length.load_relaxed(); length != 0) {
        const std::size_t filled = (std::size_t{run.high} + run_bytes - 1) >> run_shift;
        const std::size_t kept = std::max<std::size_t>(filled, 1);
        for (std::size_t i = kept; i < length; ++i) {
            end_run(number + i);
            runs_[number + i].returned = !file_backed(); // no page of it was touched
        }
        run.length.store_release(static_cast<std::uint16_t>(kept));
    }
    note_gaps(number);
    run.status.store_release(dense_run::state::sealed);
}

// Open long runs that are as good as full, or of what they were filled with a quarter is dead: as long as a run is
// open it is neither returned nor compacted, and that may be megabytes.
template <class P>
void dense_heap<P>::seal_long_runs() noexcept {
    for (std::uint32_t& open : open_long_) {
        if (open == no_run) continue;
        const dense_run& run = runs_[open];
        const std::size_t filled = run.fill.load_relaxed();
        const std::size_t live = run.live.load_relaxed() & dense_detail::bytes_mask;
        if (filled + max_small_size < length_of_run(open) << run_shift && live >= filled / 4 * 3)
            continue;
        seal(open);
        open = no_run;
    }
}

// Nothing of the run is in use any more. Its memory is still there.
template <class P>
void dense_heap<P>::end_run(std::size_t number) noexcept {
    dense_run& run = runs_[number];
    run.status.store_release(dense_run::state::unused);
    run.length.store_release(0);
    run.before.store_release(0);
    run.evacuating = false;
    run.returned = false;
    if ((run.births.load_relaxed() & static_cast<std::uint8_t>(birth_news::memory)) != 0)
        births_in_memory_.fetch_sub_relaxed(run_bytes);
    run.births.store_relaxed(0);
    if (frozen(run)) {
        ++frozen_free_;
    } else {
        set_free_bit(number, true);
    }
}

template <class P>
bool dense_heap<P>::grow() noexcept {
    if (committed_ >= bytes_) return false;
    std::size_t chunk =
        std::min(file_backed() ? dense_detail::file_chunk : dense_detail::commit_chunk(committed_),
                 bytes_ - committed_);
    const std::size_t runs = (committed_ + chunk) >> run_shift;
    if (!runs_.commit_to(runs) || !starts_.commit_to(runs * words_per_run) ||
        !middle_starts_.commit_to(runs * places_per_run) || !free_.commit_to((runs + 63) / 64)) {
        return false;
    }
    const auto commit = [&](std::size_t bytes) {
        if (!file_backed()) return os::commit(base_ + committed_, bytes) == 0;
        // Order: size, storage, mapping. Each step that fails leaves what the next call repeats.
        return open_file() && os::grow_file(fd_, committed_ + bytes) == 0 &&
               os::allocate_file(fd_, committed_, bytes) == 0 && map_current(committed_, bytes);
    };
    if (!commit(chunk)) {
        chunk = run_bytes; // little may still fit
        if (!commit(chunk)) return false;
    }
    committed_ += chunk;
    return true;
}

// The current file, made when it is needed: as long as what is mapped, and without storage. False:
// none can be had.
template <class P>
bool dense_heap<P>::open_file() noexcept {
    if (fd_ >= 0) return true;
    int fd = -1;
    if (os::open_temporary_file(directory_, &fd) != 0) return false;
    if (committed_ != 0 && os::grow_file(fd, committed_) != 0) {
        os::close_file(fd);
        return false;
    }
    fd_ = fd;
    return true;
}

template <class P>
bool dense_heap<P>::map_current(std::size_t offset, std::size_t bytes) noexcept {
    char* const begin = base_ + offset;
    if (os::map_file(begin, bytes, fd_, offset) != 0) return false;
    // A fault asks for one object. Read-ahead would bring its neighbours back into the page cache,
    // where nothing pages them out again.
    os::advise(begin, bytes, os::advice::random);
    // Two processes with one shared mapping would corrupt each other. A child that was made past
    // the fork handlers (_Fork, clone) finds nothing here instead.
    os::advise(begin, bytes, os::advice::dontfork);
    // A core dump would read all of it back, when memory is short already.
    os::advise(begin, bytes, os::advice::dontdump);
    return true;
}

template <class P>
void dense_heap<P>::undo(void* object) noexcept {
    const std::size_t number = run_of(object);
    dense_run& run = runs_[number];
    const std::size_t offset = offset_in(number, object);
    const std::size_t size = size_of(object);
    if (hides(poison_)) asan::hide(object, size);
    const bool last = offset + size == run.fill.load_relaxed();
    if (last && run.status.load_relaxed() == dense_run::state::open) {
        run.fill.store_release(static_cast<std::uint32_t>(offset));
    }
    run.live.fetch_sub_acq_rel(dense_detail::one_object + size);
}

template <class P>
void dense_heap<P>::free(void* object) noexcept {
    const std::size_t size = size_of(object);
    if (poison_ != poisoning::none) poison(object, size, poison_);
    // Releases this thread's accesses to the object; decommit_free_memory acquires.
    runs_[run_of(object)].live.fetch_sub_acq_rel(dense_detail::one_object + size);
}

template <class P>
free_result dense_heap<P>::free_checked(void* object) noexcept {
    if (size_of_racy(object) == 0) return free_result::no_object;
    // Of a run that a thread fills the live word has what was freed alone.
    if (const dense_run& its = runs_[run_of(object)];
        its.status.load_acquire() != dense_state::born &&
        its.live.load_relaxed() < dense_detail::one_object)
        return free_result::freed_before;
    const std::size_t run = run_number(object);
    if (freed_.commit_to((run + 1) * words_per_run)) { // else it is taken for right
        const std::size_t at = offset_in(run, object) / granule;
        const std::uint64_t bit = std::uint64_t{1} << (at % 64);
        if ((freed_[run * words_per_run + at / 64].fetch_or_relaxed(bit) & bit) != 0)
            return free_result::freed_before;
    }
    free(object);
    return free_result::done;
}

// Emptying.

template <class P>
evacuation_choice dense_heap<P>::select_evacuation(double max_live_fraction, std::size_t max_bytes,
                                                   run_filter spared,
                                                   std::size_t holes_kept) noexcept {
    struct candidate {
        double live_share;
        std::uint32_t live;
        std::uint32_t run;
    };
    {
        const std::lock_guard hold(lock_);
        seal_long_runs();
    }
    const std::size_t end = frontier_.load_acquire();
    for (std::size_t i = 0; i < end; ++i) runs_[i].evacuating = false;
    evacuation_choice chosen;
    chosen.live_bytes = select_frozen(max_bytes);
    evacuation_ = chosen.live_bytes != 0;
    std::vector<candidate> sparse;
    try {
        for (std::size_t i = 0; i < end; ++i) {
            const dense_run& run = runs_[i];
            if (run.status.load_acquire() != dense_run::state::sealed || run.evacuating) continue;
            const auto live =
                static_cast<std::uint32_t>(run.live.load_relaxed() & dense_detail::bytes_mask);
            if (live == 0) continue;
            const std::size_t room = room_of_run(i);
            const std::size_t holes = extent_of_run(i) - with_gaps(i, live);
            if (live >= room / 2 && spared.names(i)) {
                chosen.spared_hole_bytes += holes;
                continue;
            }
            chosen.hole_bytes += holes;
            const double share = live / static_cast<double>(room);
            if (share < max_live_fraction || share < dense_enough)
                sparse.push_back({share, live, static_cast<std::uint32_t>(i)});
        }
    } catch (const std::bad_alloc&) {
        // Fewer candidates than there are: the rest waits for a better time.
    }
    std::sort(sparse.begin(), sparse.end(), [](const candidate& a, const candidate& b) {
        // High addresses go first.
        return a.live_share != b.live_share ? a.live_share < b.live_share : a.run > b.run;
    });
    std::size_t holes = chosen.hole_bytes;
    for (const candidate& c : sparse) {
        if (c.live_share >= max_live_fraction && holes <= holes_kept) break;
        if (chosen.live_bytes + c.live > max_bytes) break;
        chosen.live_bytes += c.live;
        holes -= extent_of_run(c.run) - with_gaps(c.run, c.live);
        runs_[c.run].evacuating = true;
    }
    return chosen;
}

// Whole files, since the storage of a frozen file goes only with the last of its runs: the one that
// gives most storage for the bytes that have to be moved is first. So what is kept for nothing falls
// below half of the live bytes again, and a process that forks again and again has a bounded number
// of files. What does not fit into max_bytes waits for the next window, where its file, which has
// fewer live bytes then, is chosen before others.
template <class P>
std::size_t dense_heap<P>::select_frozen(std::size_t max_bytes) noexcept {
    if (frozen_count_ == 0) return 0;
    std::size_t live_in[frozen_limit] = {};
    std::size_t kept_in[frozen_limit] = {}; // with gaps
    bool chosen[frozen_limit] = {};
    std::size_t live = 0;
    std::size_t dead = frozen_storage_.load_relaxed();
    const std::size_t end = frontier_.load_acquire();
    for (std::size_t i = 0; i < end; ++i) {
        const std::size_t bytes = live_now(i) & dense_detail::bytes_mask;
        live += bytes;
        if (!frozen(runs_[i])) continue;
        const std::size_t file = entry_of(runs_[i].file.load_relaxed());
        const std::size_t kept = with_gaps(i, bytes);
        live_in[file] += bytes;
        kept_in[file] += kept;
        dead -= std::min(dead, kept);
    }
    std::size_t files = frozen_count_;
    while (files != 0 && (dead > live / 2 || files > files_kept)) {
        std::size_t best = frozen_limit;
        double most = 0;
        for (std::size_t i = 0; i < frozen_count_; ++i) {
            const double gain = (static_cast<double>(frozen_[i].storage) + 1) /
                                (static_cast<double>(live_in[i]) + 1);
            if (!chosen[i] && gain > most) {
                best = i;
                most = gain;
            }
        }
        chosen[best] = true;
        --files;
        dead -=
            std::min(dead, frozen_[best].storage - std::min(frozen_[best].storage, kept_in[best]));
    }
    if (files == frozen_count_) return 0;
    std::size_t total = 0;
    for (std::size_t i = 0; i < end; ++i) {
        dense_run& run = runs_[i];
        const std::size_t bytes = run.live.load_relaxed() & dense_detail::bytes_mask;
        if (bytes == 0 || !frozen(run) || !chosen[entry_of(run.file.load_relaxed())]) continue;
        if (total + bytes > max_bytes) break;
        total += bytes;
        run.evacuating = true;
    }
    return total;
}

// Takes note of a run that has become empty. True: the memory of the run with this number can go back; of a
// long one the others have to be asked of.
template <class P>
bool dense_heap<P>::returnable(std::size_t number) noexcept {
    const std::lock_guard hold(lock_);
    const dense_run& run = runs_[number];
    if (run.status.load_relaxed() == dense_run::state::sealed && run.live.load_acquire() == 0)
        for (std::size_t i = length_of_run(number); i-- > 0;) end_run(number + i);
    return run.status.load_relaxed() == dense_run::state::unused && !run.returned && !frozen(run);
}

template <class P>
std::size_t dense_heap<P>::return_runs(const std::uint32_t* runs, std::size_t count,
                                       pacer& ask) noexcept {
    constexpr std::size_t most = piece_bytes >> run_shift;
    std::size_t bytes = 0;
    std::size_t first = 0, end = 0; // neighbours that can go back, since the last question
    const auto give_back = [&](std::size_t next) {
        if (first != end) {
            bytes += decommit_range(first, end - first, ask);
            (void)ask.may_continue();
        }
        first = end = next;
    };
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t stop = runs[i] + length_of_run(runs[i]);
        for (std::size_t run = runs[i]; run < stop; ++run) {
            if (run != end || run - first == most) give_back(run);
            if (returnable(run)) end = run + 1;
        }
    }
    give_back(0);
    return bytes;
}

// A fork between two pieces may freeze the file, and with it any run: nothing is remembered across.
template <class P>
std::size_t dense_heap<P>::decommit_free_memory(pacer& ask) noexcept {
    // A file that is too old to be written back by name; here, because no thread uses the
    // descriptors.
    while (frozen_count_ > 2 * files_kept) merge_oldest();
    {
        const std::lock_guard hold(lock_);
        seal_long_runs();
    }
    constexpr std::size_t most = piece_bytes >> run_shift;
    const std::size_t end = frontier_.load_acquire();
    std::size_t bytes = 0;
    bool may_continue = true;
    for (std::size_t i = 0; i < end && may_continue;) {
        const std::size_t first = i;
        while (i < end && i - first < most && returnable(i)) ++i;
        if (i == first) {
            ++i;
            continue;
        }
        bytes += decommit_range(first, i - first, ask);
        may_continue = ask.may_continue();
    }
    const std::lock_guard hold(lock_);
    if (frozen_free_ != 0) bytes += adopt_free_runs();
    return bytes;
}

// Frozen files.

template <class P>
std::size_t dense_heap<P>::entry_of(std::uint32_t file) const noexcept {
    std::size_t i = 0;
    while (frozen_[i].last < file) ++i;
    return i;
}

// The two oldest files are counted as one from now on, and the kernel writes them back by itself.
template <class P>
void dense_heap<P>::merge_oldest() noexcept {
    for (std::size_t i = 0; i < 2; ++i) {
        if (frozen_[i].fd >= 0) os::close_file(frozen_[i].fd);
    }
    frozen_[1] = {frozen_[1].last, -1, frozen_[0].runs + frozen_[1].runs,
                  frozen_[0].storage + frozen_[1].storage};
    std::copy(frozen_ + 1, frozen_ + frozen_count_, frozen_);
    --frozen_count_;
}

// The current file lies beneath the run now.
template <class P>
void dense_heap<P>::leave_file(dense_run& run) noexcept {
    const std::size_t at = entry_of(run.file.load_relaxed());
    run.file.store_relaxed(file_.load_relaxed());
    run.shared = true;
    frozen_file& left = frozen_[at];
    if (--left.runs != 0) return;
    if (left.fd >= 0) os::close_file(left.fd);
    frozen_storage_.fetch_sub_relaxed(left.storage);
    std::copy(frozen_ + at + 1, frozen_ + frozen_count_, frozen_ + at);
    --frozen_count_;
}

// Maps the current file over frozen runs that are unused, neighbours together: they are free runs
// like others then, without storage yet. Where that fails, or would make more mappings than a
// library should take of the process's, their pages go back and they are tried again after the next
// window. Returns the bytes that went back and had not before.
template <class P>
std::size_t dense_heap<P>::adopt_free_runs() noexcept {
    adoptable_ = false;
    const std::size_t end = frontier_.load_relaxed();
    const std::uint32_t current = file_.load_relaxed();
    const auto file_at = [&](std::size_t run) { return runs_[run].file.load_relaxed(); };
    std::size_t pieces = 1;
    for (std::size_t i = 1; i < end; ++i) pieces += file_at(i) != file_at(i - 1);
    bool possible = open_file();
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < end && frozen_free_ != 0;) {
        const auto free = [&](std::size_t run) {
            return runs_[run].status.load_relaxed() == dense_run::state::unused &&
                   frozen(runs_[run]);
        };
        if (!free(i)) {
            ++i;
            continue;
        }
        const std::size_t first = i;
        std::size_t before = first != 0 && file_at(first - 1) != file_at(first);
        for (++i; i < end && free(i); ++i) before += file_at(i) != file_at(i - 1);
        before += i < end && file_at(i) != file_at(i - 1);
        const std::size_t after =
            (first != 0 && file_at(first - 1) != current) + (i < end && file_at(i) != current);
        const std::size_t offset = first << run_shift;
        const std::size_t length = (i - first) << run_shift;
        const bool affordable = after <= before || pieces + after - before <= pieces_kept;
        if (possible && affordable) possible = map_current(offset, length);
        if (possible && affordable) {
            pieces = pieces + after - before;
            for (std::size_t run = first; run < i; ++run) {
                bytes += runs_[run].returned ? 0 : run_bytes;
                runs_[run].returned = true;
                leave_file(runs_[run]);
                set_free_bit(run, true);
            }
            frozen_free_ -= i - first;
            continue;
        }
        for (std::size_t run = first; run < i; ++run) {
            // Nothing in it is alive, so nothing but copies of dead bytes is dropped.
            if (!runs_[run].returned && !runs_[run].shared &&
                os::advise(base_ + (run << run_shift), run_bytes, os::advice::dontneed) == 0) {
                runs_[run].returned = true;
                bytes += run_bytes;
            }
        }
    }
    return bytes;
}

// Those of the runs that are returnable still. Returns the bytes given back. On failure the runs stay free and are tried
// again next time.
template <class P>
std::size_t dense_heap<P>::decommit_range(std::size_t first, std::size_t count,
                                          pacer& ask) noexcept {
    {
        const std::lock_guard hold(lock_);
        const auto unused = [this](std::size_t run) {
            return runs_[run].status.load_relaxed() == dense_run::state::unused;
        };
        // Births may have taken some since they were looked at.
        std::size_t end = first;
        while (end < first + count && unused(end)) ++end;
        count = end - first;
        if (count == 0) return 0;
        // With those that share a page of marks with the outer ones.
        constexpr std::size_t in_page = os::page_size / sizeof(std::uint64_t) / words_per_run;
        returning_ = first;
        while (returning_ % in_page != 0 && unused(returning_ - 1)) --returning_;
        while (end % in_page != 0 && end < frontier_.load_relaxed() && unused(end)) ++end;
        returning_end_ = end;
    }
    const int error = return_memory(first, count, ask);
    // They mean nothing in a run that is not in use.
    starts_.decommit(returning_ * words_per_run, returning_end_ * words_per_run);
    const std::lock_guard hold(lock_);
    returning_ = returning_end_ = 0;
    if (error != 0) return 0;
    for (std::size_t i = first; i < first + count; ++i) runs_[i].returned = true;
    return count << run_shift;
}

// Of free runs that nobody takes meanwhile. A fork may come while pages go back, but not while a file is punched: it
// freezes the file.
template <class P>
int dense_heap<P>::return_memory(std::size_t first, std::size_t count, pacer& ask) noexcept {
    const std::size_t length = count << run_shift;
    if (file_backed()) return os::punch_file(fd_, first << run_shift, length);
    ask.call_begins();
    const int error = os::advise(base_ + (first << run_shift), length, os::advice::dontneed);
    ask.call_ends();
    return error;
}

template <class P>
void dense_heap<P>::set_free_bit(std::size_t run, bool free) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << (run % 64);
    if (free) {
        free_[run / 64] |= bit;
        ++free_runs_;
        lowest_word_ = std::min(lowest_word_, run / 64);
    } else {
        free_[run / 64] &= ~bit;
        --free_runs_;
    }
}

template <class P>
std::size_t dense_heap<P>::lowest_free() noexcept {
    if (free_runs_ == 0) return SIZE_MAX;
    while (free_[lowest_word_] == 0) ++lowest_word_;
    return lowest_word_ * 64 + static_cast<unsigned>(std::countr_zero(free_[lowest_word_]));
}

// Looking.

template <class P>
dense_counters dense_heap<P>::counters() const noexcept {
    dense_counters sum;
    const std::lock_guard hold(lock_);
    const std::size_t end = frontier_.load_acquire();
    for (std::size_t i = 0; i < end; ++i) {
        const dense_run& run = runs_[i];
        const auto status = run.status.load_relaxed();
        const bool in_frozen_file = frozen(run); // whose storage is counted as a whole
        if (status == dense_run::state::unused) {
            if (!run.returned && !in_frozen_file) sum.extent_bytes += run_bytes;
            continue;
        }
        if (status == dense_run::state::joined) continue;
        const std::uint64_t live = live_of(i);
        sum.live_bytes += live & dense_detail::bytes_mask;
        sum.live_objects += live >> 32;
        const std::size_t length = length_of_run(i);
        // A long run's storage is there before it is filled, its memory is not.
        if (!in_frozen_file)
            sum.extent_bytes += file_backed() ? length << run_shift : extent_of_run(i);
        sum.runs += length;
        if (run.evacuating) ++sum.evacuating_runs;
    }
    sum.extent_bytes += frozen_storage_.load_relaxed();
    sum.hole_bytes = sum.extent_bytes - sum.live_bytes;
    return sum;
}

template <class P>
std::size_t dense_heap<P>::metadata_bytes() const noexcept {
    return runs_.committed_bytes() + starts_.committed_bytes() + long_starts_.committed_bytes() +
           middle_starts_.committed_bytes() + freed_.committed_bytes() + free_.committed_bytes() +
           owners_memory_.committed_bytes();
}

template <class P>
void dense_heap<P>::walk_extents(void (*visit)(void*, char*, char*), void* context) const {
    const std::size_t end = frontier_.load_acquire();
    char* begin = nullptr;
    char* stop = nullptr;
    for (std::size_t i = 0; i < end; ++i) {
        const dense_run& run = runs_[i];
        const auto status = run.status.load_relaxed();
        const std::size_t fill = run.fill.load_relaxed();
        if (status == dense_run::state::unused || fill == 0) continue;
        char* const memory = memory_of(i);
        const std::size_t length =
            status == dense_run::state::open || status == dense_run::state::born
                ? round_up(fill, os::page_size)
                : extent_of_run(i);
        if (memory != stop) {
            if (begin != nullptr) visit(context, begin, stop);
            begin = memory;
        }
        stop = memory + length;
    }
    if (begin != nullptr) visit(context, begin, stop);
}

template <class P>
void dense_heap<P>::walk_backing(void (*visit)(void*, char*, char*, int), void* context) const {
    const std::size_t end = frontier_.load_acquire();
    for (std::size_t i = 0; i < end;) {
        const std::size_t first = i;
        const std::uint32_t file = runs_[first].file.load_relaxed();
        while (i < end && runs_[i].file.load_relaxed() == file) ++i;
        const int fd = file == file_.load_relaxed() ? fd_ : frozen_[entry_of(file)].fd;
        visit(context, base_ + (first << run_shift), base_ + (i << run_shift), fd);
    }
}

template <class P>
unsigned dense_heap<P>::filling_threads(std::size_t run) const noexcept {
    unsigned threads = 0;
    if (const owners* const all = owners_.load_acquire(); all != nullptr)
        for (const row& its : all->all())
            threads += its.own.run[runs_[run].middle.load_relaxed()] == run + 1;
    return threads;
}

template <class P>
const char* dense_heap<P>::validate() const noexcept {
    const std::size_t end = frontier_.load_acquire();
    std::size_t free_runs = 0;
    std::size_t frozen_free = 0;
    std::size_t frozen_runs = 0;
    std::uint64_t in_memory = 0; // births
    for (std::size_t i = 0; i < end; ++i) {
        const dense_run& run = runs_[i];
        const auto status = run.status.load_relaxed();
        const std::uint64_t live = live_of(i);
        const bool free = (free_[i / 64] >> (i % 64) & 1U) != 0;
        if (frozen(run)) {
            ++frozen_runs;
            if (status == dense_run::state::open || status == dense_run::state::born)
                return "a frozen run is being filled";
            if (free) return "a frozen run may be filled";
            if (status == dense_run::state::unused) {
                ++frozen_free;
                continue;
            }
        } else if (run.shared != file_backed()) {
            return "a run over the current file is not shared";
        }
        if (free != (status == dense_run::state::unused))
            return "free bit and state of a run disagree";
        if (free) {
            ++free_runs;
            if (live != 0) return "a free run has live bytes";
            continue;
        }
        if (const std::size_t before = run.before.load_relaxed();
            (before != 0) != (status == dense_run::state::joined))
            return "a run belongs to no long run, or to two";
        else if (before != 0) {
            const dense_run& head = runs_[i - before];
            if (before >= head.length.load_relaxed() || head.before.load_relaxed() != 0)
                return "a run belongs to a long run that does not reach it";
            if (live != 0) return "live bytes are counted in the middle of a long run";
            if (frozen(run) != frozen(head)) return "a long run lies over two files";
            continue;
        }
        const std::size_t fill = run.fill.load_relaxed();
        const std::size_t length = length_of_run(i);
        if ((fill > run.high && status != dense_run::state::born) ||
            run.high > length << run_shift || (live & dense_detail::bytes_mask) > fill)
            return "more live bytes than filled ones";
        for (std::size_t joined = 1; joined < length; ++joined)
            if (i + joined >= end || runs_[i + joined].before.load_relaxed() != joined)
                return "a long run has a run that does not belong to it";
        if (((live >> 32) == 0) != ((live & dense_detail::bytes_mask) == 0))
            return "live objects without bytes";
        const beginnings of = beginnings_of(i);
        if (fill != 0 && !of.test(0)) return "a run begins with no object";
        std::size_t objects = 0;
        for (std::size_t at = 0; at < fill; at = of.next(at, fill)) objects += of.test(at);
        if ((live >> 32) > objects) return "more live objects than beginnings";
        if ((live & dense_detail::bytes_mask) > room_of_run(i)) return "live bytes in gaps";
        const bool is_long = run.length.load_relaxed() != 0, middle = run.middle.load_relaxed();
        const auto& open = is_long ? open_long_ : middle ? open_middle_ : open_;
        const auto& born = middle ? born_middle_ : born_;
        const bool births = !is_long && born[run.set] == i;
        if (status == dense_run::state::open && (open[run.set] == i) == births)
            return "an open run that is not being filled, or twice";
        if (status == dense_run::state::born && filling_threads(i) != 1)
            return "a run is filled by no thread, or by two";
        if ((run.births.load_relaxed() & static_cast<std::uint8_t>(birth_news::memory)) != 0)
            in_memory += run_bytes;
    }
    if (frozen_free != frozen_free_) return "free frozen runs are miscounted";
    if (in_memory != births_in_memory_.load_relaxed()) return "births in memory are miscounted";
    std::size_t storage = 0;
    for (std::size_t i = 0; i < frozen_count_; ++i) {
        frozen_runs -= std::min(frozen_runs, frozen_[i].runs);
        storage += frozen_[i].storage;
        if (frozen_[i].runs == 0) return "a frozen file beneath nothing";
    }
    if (frozen_runs != 0 || storage != frozen_storage_.load_relaxed())
        return "frozen files are miscounted";
    return free_runs == free_runs_ ? nullptr : "free runs are miscounted";
}

// fork. See the header for what freezing a file means.

// Why the snapshot is one: os::make_file_private is one step for all threads. A store of another
// thread before it is in the file, which is not written from then on; a store after it is in a
// private page, which fork copies (on write) as of the moment of the fork, as it does HOT and NEW.
// Between the steps for two pieces stores go to one place or the other; what is at the fork's
// moment in either is in the child.
//
// Why the file's dirty pages need nothing: the kernel writes them back by itself, as long as
// any process maps the file. The parent keeps the descriptor, so that hints go on writing back and
// dropping pages, and hearing of errors. The child does not: parent and child would share one
// description, on which the first to ask takes the error, and the other would drop pages that were
// never written.
//
// Only the remapping may fail, for lack of map entries or of commit. Nothing has changed then: the
// piece stays shared, in this process alone. Its objects are out of the child's reach. Copying them
// here, into memory that replaces the piece, would lose what other threads write between the copy
// and the replacement; copying in the child would be no snapshot.
template <class P>
void dense_heap<P>::fork_prepare() noexcept {
    if (owners* const all = owners_.load_acquire(); all != nullptr) all->stop();
    lock_.lock();
    if (!file_backed()) return;
    const std::size_t end = frontier_.load_relaxed();
    const std::uint32_t newest = file_.load_relaxed();
    const std::size_t tail = fd_ >= 0 ? freeze_current_file() : 0;
    for (std::size_t i = 0; i < end;) {
        const std::size_t first = i;
        const std::uint32_t file = runs_[first].file.load_relaxed();
        const bool shared = runs_[first].shared;
        while (i < end && runs_[i].shared == shared && runs_[i].file.load_relaxed() == file) ++i;
        if (!shared) continue;
        // A mapping is replaced as a whole: a part would need another map entry.
        const std::size_t bytes =
            ((i - first) << run_shift) + (i == end && file == newest ? tail : 0);
        if (!make_private(first << run_shift, bytes, frozen_[entry_of(file)].fd)) continue;
        std::for_each(&runs_[first], &runs_[i], [](dense_run& run) { run.shared = false; });
    }
}

// The books: from here on all runs over the current file are frozen ones. Returns the bytes behind
// the last run that are still mapped with it.
template <class P>
std::size_t dense_heap<P>::freeze_current_file() noexcept {
    for (auto* const opened : {&born_, &born_middle_})
        for (std::uint32_t& open : *opened)
            if (open != no_run) seal_born(std::exchange(open, no_run));
    if (owners* const all = owners_.load_acquire(); all != nullptr)
        for (unsigned number = 0; number < thread_number<P>::at_once; ++number)
            for (std::uint32_t& run : all->of_number(number).own.run)
                if (run != 0) seal_born(std::exchange(run, 0) - 1);
    for (auto* const opened : {&open_, &open_middle_, &open_long_})
        for (std::uint32_t& open : *opened) {
            if (open != no_run) {
                note_gaps(open);
                runs_[open].status.store_release(dense_run::state::sealed);
            }
            open = no_run;
        }
    const std::size_t end = frontier_.load_relaxed();
    std::size_t storage = 0;
    std::size_t runs = 0;
    for (std::size_t i = 0; i < end; ++i) {
        dense_run& run = runs_[i];
        if (frozen(run)) continue;
        ++runs;
        if (run.status.load_relaxed() == dense_run::state::unused) {
            set_free_bit(i, false);
            ++frozen_free_;
            adoptable_ = true;
            if (run.returned) continue;
        }
        storage += run_bytes;
    }
    // Memory that was made ready and never used is made ready anew, over another file. Its storage
    // is only counted: to punch it can take the disk longer than a fork should.
    const std::size_t used = end << run_shift;
    std::size_t tail = committed_ - used;
    storage += tail;
    if (tail != 0 && os::decommit(base_ + used, tail) == 0) tail = 0;
    committed_ = used;
    if (runs != 0) {
        if (frozen_count_ == frozen_limit) merge_oldest();
        frozen_[frozen_count_++] = {file_.load_relaxed(), fd_, runs, storage};
        frozen_storage_.fetch_add_relaxed(storage);
    } else {
        os::close_file(fd_);
    }
    file_.store_relaxed(file_.load_relaxed() + 1);
    fd_ = -1;
    return tail;
}

template <class P>
bool dense_heap<P>::make_private(std::size_t offset, std::size_t bytes, int fd) noexcept {
    char* const begin = base_ + offset;
    if (strict_commit_) {
        // Older kernels unmap first and find out then that the commit limit is reached. So the
        // question is asked elsewhere before.
        void* const trial = os::reserve(bytes, os::page_size);
        const bool granted = trial != nullptr && os::commit(trial, bytes) == 0;
        if (trial != nullptr) os::release(trial, bytes);
        if (!granted) return false;
    }
    if (os::make_file_private(begin, bytes, fd, offset) != 0) return false;
    os::advise(begin, bytes, os::advice::random); // as in map_current()
    return true;
}

template <class P>
bool dense_heap<P>::fork_child() noexcept {
    const std::size_t end = frontier_.load_relaxed();
    bool complete = true;
    for (std::size_t i = 0; i < end; ++i) {
        dense_run& run = runs_[i];
        if (!run.shared) continue;
        // Pages that could not be made private have no mapping here: reserve the place again.
        complete = false;
        os::decommit(base_ + (i << run_shift), run_bytes);
        run.shared = false;
    }
    for (std::size_t i = 0; i < frozen_count_; ++i) {
        if (frozen_[i].fd >= 0) os::close_file(frozen_[i].fd);
        frozen_[i].fd = -1;
    }
    returning_ = returning_end_ = 0; // by the collector of the parent
    lock_.unlock_in_child();
    if (owners* const all = owners_.load_acquire(); all != nullptr) {
        all->only_caller_is_left();
        all->let_go();
    }
    return complete;
}

} // namespace obase::heap
