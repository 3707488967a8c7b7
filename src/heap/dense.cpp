// SPDX-License-Identifier: MIT
#include "heap/dense.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "heap/poison.hpp"
#include "os/memory.hpp"

namespace obase::heap {
namespace {

constexpr std::uint64_t one_object = std::uint64_t{1} << 32;
constexpr std::uint64_t bytes_mask = one_object - 1;

constexpr std::size_t commit_chunk(std::size_t committed) noexcept {
    return std::clamp<std::size_t>(round_up(committed / 8, 2U << 20), 2U << 20, 64U << 20);
}
// File storage is taken in small steps: a chunk that is not used is disk that others lack.
constexpr std::size_t file_chunk = 2U << 20;

} // namespace

int dense_heap::create(char* base, std::size_t bytes, const char* directory, bool poison_freed,
                       const char** what) noexcept {
    base_ = base;
    bytes_ = bytes;
    poison_ = poison_freed;
    std::fill(std::begin(open_), std::end(open_), no_run);
    const std::size_t runs = bytes >> run_shift;
    *what = "reserving side tables";
    if (!runs_.reserve(runs) || !starts_.reserve(runs * words_per_run) ||
        !free_.reserve((runs + 63) / 64)) {
        return ENOMEM;
    }
    if (directory == nullptr) return 0;
    *what = "the name of the directory";
    if (std::strlen(directory) >= sizeof directory_) return ENAMETOOLONG;
    std::strcpy(directory_, directory);
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

void dense_heap::destroy() noexcept {
    if (fd_ >= 0) os::close_file(fd_);
    fd_ = -1;
    runs_.release();
    starts_.release();
    free_.release();
}

// Where objects end.

// Offset of the first mark in (after, limit); limit when there is none.
std::size_t dense_heap::next_mark(std::size_t run, std::size_t after,
                                  std::size_t limit) const noexcept {
    const std::size_t first = after / granule + 1;
    const std::size_t end = limit / granule;
    const auto* const marks = marks_of(run);
    for (std::size_t at = first; at < end;) {
        const std::uint64_t word = marks[at / 64].load_acquire() >> (at % 64);
        if (word != 0) {
            at += static_cast<unsigned>(std::countr_zero(word));
            return at < end ? at * granule : limit;
        }
        at = (at / 64 + 1) * 64;
    }
    return limit;
}

// The fill mark is read before the marks, and allocate() writes it after them: whoever sees a fill
// mark beyond the end of the object also sees the mark that ends it. When the fill mark just
// reaches the object's end it is the end.
std::size_t dense_heap::size_of(const void* object) const noexcept {
    const std::size_t run = run_number(object);
    const std::size_t offset = offset_in_run(object);
    const std::size_t fill = runs_[run].fill.load_acquire();
    return next_mark(run, offset, fill) - offset;
}

std::size_t dense_heap::size_of_racy(const void* object) const noexcept {
    const std::size_t run = run_number(object);
    const std::size_t offset = offset_in_run(object);
    if (run >= frontier_.load_acquire()) return 0;
    if (runs_[run].status.load_acquire() == dense_run::state::unused) return 0;
    if (offset % granule != 0 || offset >= runs_[run].fill.load_acquire()) return 0;
    const std::size_t at = offset / granule;
    if ((marks_of(run)[at / 64].load_acquire() >> (at % 64) & 1U) == 0) return 0;
    return size_of(object);
}

// Filling.

void* dense_heap::allocate(std::size_t size, unsigned set) noexcept {
    if (size > max_small_size) return nullptr;
    std::uint32_t number = open_[set];
    if (number == no_run || runs_[number].fill.load_relaxed() + size > run_bytes) {
        if (!open_run(set)) return nullptr;
        number = open_[set];
    }
    dense_run& run = runs_[number];
    const std::uint32_t begin = run.fill.load_relaxed();
    const auto end = static_cast<std::uint32_t>(begin + size);
    auto* const marks = marks_of(number);
    // Marks that an undo left behind lie in [begin, high). Nobody can be looking past the one at
    // `begin`.
    for (std::size_t at = next_mark(number, begin, std::min(end, run.high));
         at < std::min(end, run.high); at = next_mark(number, at, std::min(end, run.high))) {
        marks[at / granule / 64].fetch_and_relaxed(~(std::uint64_t{1} << (at / granule % 64)));
    }
    const std::size_t first = begin / granule;
    auto& word = marks[first / 64];
    // Only this thread writes marks, so no read-modify-write is needed.
    word.store_release(word.load_relaxed() | std::uint64_t{1} << (first % 64));
    run.live.fetch_add_relaxed(one_object + size);
    run.fill.store_release(end); // pairs with size_of
    run.high = std::max(run.high, end);
    return base_ + (std::size_t{number} << run_shift) + begin;
}

bool dense_heap::open_run(unsigned set) noexcept {
    std::size_t number = lowest_free();
    const bool reused = number != SIZE_MAX;
    if (!reused) {
        number = frontier_.load_relaxed();
        if (((number + 1) << run_shift) > committed_ && !grow()) return false;
    }
    dense_run& run = runs_[number];
    if (reused) {
        // Storage first: from here on a write to the run cannot fail.
        if (fd_ >= 0 && run.returned &&
            os::allocate_file(fd_, number << run_shift, run_bytes) != 0) {
            return false;
        }
        set_free_bit(number, false);
        for (std::size_t i = 0; i < words_per_run; ++i) marks_of(number)[i].store_relaxed(0);
    } else {
        frontier_.store_release(number + 1);
    }
    if (open_[set] != no_run) {
        runs_[open_[set]].status.store_release(dense_run::state::sealed);
    }
    run.fill.store_relaxed(0);
    run.high = 0;
    run.set = static_cast<std::uint8_t>(set);
    run.returned = false;
    run.evacuating = false;
    run.status.store_release(dense_run::state::open);
    open_[set] = static_cast<std::uint32_t>(number);
    return true;
}

bool dense_heap::grow() noexcept {
    if (committed_ >= bytes_) return false;
    std::size_t chunk =
        std::min(fd_ >= 0 ? file_chunk : commit_chunk(committed_), bytes_ - committed_);
    const std::size_t runs = (committed_ + chunk) >> run_shift;
    if (!runs_.commit_to(runs) || !starts_.commit_to(runs * words_per_run) ||
        !free_.commit_to((runs + 63) / 64)) {
        return false;
    }
    const auto commit = [&](std::size_t bytes) {
        if (fd_ < 0) return os::commit(base_ + committed_, bytes) == 0;
        // Order: size, storage, mapping. Each step that fails leaves what the next call repeats.
        return os::grow_file(fd_, committed_ + bytes) == 0 &&
               os::allocate_file(fd_, committed_, bytes) == 0 &&
               os::map_file(base_ + committed_, bytes, fd_, committed_) == 0;
    };
    if (!commit(chunk)) {
        chunk = run_bytes; // little may still fit
        if (!commit(chunk)) return false;
    }
    // A fault asks for one object. Read-ahead would bring its neighbours back into the page cache,
    // where nothing pages them out again.
    if (fd_ >= 0) os::advise(base_ + committed_, chunk, os::advice::random);
    committed_ += chunk;
    return true;
}

void dense_heap::undo(void* object) noexcept {
    const std::size_t number = run_number(object);
    dense_run& run = runs_[number];
    const std::size_t offset = offset_in_run(object);
    const std::size_t size = size_of(object);
    const bool last = offset + size == run.fill.load_relaxed();
    if (last && run.status.load_relaxed() == dense_run::state::open) {
        run.fill.store_release(static_cast<std::uint32_t>(offset));
    }
    run.live.fetch_sub_acq_rel(one_object + size);
}

void dense_heap::free(void* object) noexcept {
    const std::size_t size = size_of(object);
    if (poison_) poison(object, size);
    // Releases this thread's accesses to the object; return_free_memory acquires.
    runs_[run_number(object)].live.fetch_sub_acq_rel(one_object + size);
}

// Emptying.

std::size_t dense_heap::select_evacuation(double max_live_fraction,
                                          std::size_t max_bytes) noexcept {
    struct candidate {
        std::uint32_t live;
        std::uint32_t run;
    };
    const std::size_t end = frontier_.load_relaxed();
    std::vector<candidate> sparse;
    try {
        for (std::size_t i = 0; i < end; ++i) {
            dense_run& run = runs_[i];
            run.evacuating = false;
            if (run.status.load_relaxed() != dense_run::state::sealed) continue;
            const auto live = static_cast<std::uint32_t>(run.live.load_relaxed() & bytes_mask);
            if (live != 0 && live < max_live_fraction * double{run_bytes}) {
                sparse.push_back({live, static_cast<std::uint32_t>(i)});
            }
        }
    } catch (const std::bad_alloc&) {
        // Fewer candidates than there are: the rest waits for a better time.
    }
    std::sort(sparse.begin(), sparse.end(), [](const candidate& a, const candidate& b) {
        return a.live != b.live ? a.live < b.live : a.run > b.run; // high addresses go first
    });
    std::size_t total = 0;
    for (const candidate& c : sparse) {
        if (total + c.live > max_bytes) break;
        total += c.live;
        runs_[c.run].evacuating = true;
    }
    return total;
}

std::size_t dense_heap::return_free_memory() noexcept {
    const std::size_t end = frontier_.load_relaxed();
    std::size_t bytes = 0;
    std::size_t first = 0;
    std::size_t count = 0;
    for (std::size_t i = 0; i < end; ++i) {
        dense_run& run = runs_[i];
        if (run.status.load_relaxed() == dense_run::state::sealed && run.live.load_acquire() == 0) {
            run.status.store_release(dense_run::state::unused);
            run.evacuating = false;
            run.returned = false;
            set_free_bit(i, true);
        }
        const bool returnable =
            run.status.load_relaxed() == dense_run::state::unused && !run.returned;
        if (returnable && count != 0 && first + count == i) {
            ++count;
        } else if (returnable) {
            bytes += give_back(first, count);
            first = i;
            count = 1;
        }
    }
    return bytes + give_back(first, count);
}

// Returns the bytes given back. On failure the runs stay free and are tried again next time.
std::size_t dense_heap::give_back(std::size_t first, std::size_t count) noexcept {
    if (count == 0) return 0;
    const std::size_t length = count << run_shift;
    char* const begin = base_ + (first << run_shift);
    const int error = fd_ >= 0 ? os::punch_file(fd_, first << run_shift, length)
                               : os::advise(begin, length, os::advice::dontneed);
    if (error != 0) return 0;
    for (std::size_t i = first; i < first + count; ++i) runs_[i].returned = true;
    return length;
}

void dense_heap::set_free_bit(std::size_t run, bool free) noexcept {
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

std::size_t dense_heap::lowest_free() noexcept {
    if (free_runs_ == 0) return SIZE_MAX;
    while (free_[lowest_word_] == 0) ++lowest_word_;
    return lowest_word_ * 64 + static_cast<unsigned>(std::countr_zero(free_[lowest_word_]));
}

// Looking.

dense_counters dense_heap::counters() const noexcept {
    dense_counters sum;
    const std::size_t end = frontier_.load_acquire();
    for (std::size_t i = 0; i < end; ++i) {
        const dense_run& run = runs_[i];
        const auto status = run.status.load_relaxed();
        if (status == dense_run::state::unused) {
            if (!run.returned) sum.extent_bytes += run_bytes;
            continue;
        }
        const std::uint64_t live = run.live.load_relaxed();
        sum.live_bytes += live & bytes_mask;
        sum.live_objects += live >> 32;
        sum.extent_bytes += run_bytes;
        ++sum.runs;
        if (run.evacuating) ++sum.evacuating_runs;
    }
    sum.hole_bytes = sum.extent_bytes - sum.live_bytes;
    return sum;
}

std::size_t dense_heap::metadata_bytes() const noexcept {
    return runs_.committed_bytes() + starts_.committed_bytes() + free_.committed_bytes();
}

void dense_heap::walk_extents(void (*visit)(void*, char*, char*), void* context) const {
    const std::size_t end = frontier_.load_acquire();
    char* begin = nullptr;
    char* stop = nullptr;
    for (std::size_t i = 0; i < end; ++i) {
        const dense_run& run = runs_[i];
        const auto status = run.status.load_relaxed();
        const std::size_t fill = run.fill.load_relaxed();
        if (status == dense_run::state::unused || fill == 0) continue;
        char* const memory = base_ + (i << run_shift);
        const std::size_t length =
            status == dense_run::state::open ? round_up(fill, os::page_size) : run_bytes;
        if (memory != stop) {
            if (begin != nullptr) visit(context, begin, stop);
            begin = memory;
        }
        stop = memory + length;
    }
    if (begin != nullptr) visit(context, begin, stop);
}

const char* dense_heap::validate() const noexcept {
    const std::size_t end = frontier_.load_acquire();
    std::size_t free_runs = 0;
    for (std::size_t i = 0; i < end; ++i) {
        const dense_run& run = runs_[i];
        const auto status = run.status.load_relaxed();
        const std::uint64_t live = run.live.load_relaxed();
        const bool free = (free_[i / 64] >> (i % 64) & 1U) != 0;
        if (free != (status == dense_run::state::unused))
            return "free bit and state of a run disagree";
        if (free) {
            ++free_runs;
            if (live != 0) return "a free run has live bytes";
            continue;
        }
        const std::size_t fill = run.fill.load_relaxed();
        if (fill > run_bytes || (live & bytes_mask) > fill)
            return "more live bytes than filled ones";
        if (((live >> 32) == 0) != ((live & bytes_mask) == 0)) return "live objects without bytes";
        if (fill != 0 && (marks_of(i)[0].load_relaxed() & 1U) == 0)
            return "a run begins with no object";
        std::size_t objects = 0;
        for (std::size_t at = 0; at < fill; at = next_mark(i, at, fill)) ++objects;
        if ((live >> 32) > objects) return "more live objects than beginnings";
        if (status == dense_run::state::open && open_[run.set] != i)
            return "an open run nobody fills";
    }
    return free_runs == free_runs_ ? nullptr : "free runs are miscounted";
}

// fork. A shared mapping of a file would be shared with the child, where each must have its own.
// The child copies the file; the parent waits meanwhile, so that neither the collector nor the
// forking thread changes it. Other threads of the parent may still write to objects they already
// hold: the child sees those objects as of some moment shortly after the fork.

void dense_heap::fork_prepare() noexcept {
    if (fd_ >= 0 && os::open_pipe(fork_pipe_) != 0) fork_pipe_[0] = fork_pipe_[1] = -1;
}

void dense_heap::fork_parent() noexcept {
    if (fork_pipe_[0] < 0) return;
    os::close_file(fork_pipe_[1]);
    os::wait_until_closed(fork_pipe_[0]); // ends also when the child dies
    os::close_file(fork_pipe_[0]);
    fork_pipe_[0] = fork_pipe_[1] = -1;
}

void dense_heap::fork_child() noexcept {
    if (fd_ < 0) return;
    // To go on with a file that the parent still writes would be silent corruption of both.
    os::native_platform::check(copy_backing_in_child(),
                               "fork: no file space and no memory for a copy of the cold objects");
    if (fork_pipe_[0] >= 0) {
        os::close_file(fork_pipe_[0]);
        os::close_file(fork_pipe_[1]);
        fork_pipe_[0] = fork_pipe_[1] = -1;
    }
}

bool dense_heap::copy_backing_in_child() noexcept {
    const std::size_t end = frontier_.load_relaxed();
    const auto in_use = [&](std::size_t run) {
        return runs_[run].status.load_relaxed() != dense_run::state::unused;
    };
    const auto copy_to_file = [&](int to) {
        if (committed_ == 0) return true;
        if (os::grow_file(to, committed_) != 0) return false;
        for (std::size_t i = 0; i < end; ++i) {
            if (in_use(i) && (os::allocate_file(to, i << run_shift, run_bytes) != 0 ||
                              os::copy_file(fd_, to, i << run_shift, run_bytes) != 0)) {
                return false;
            }
        }
        // Committed but never used: storage must exist before the frontier gets there.
        const std::size_t used = end << run_shift;
        if (used != committed_ && os::allocate_file(to, used, committed_ - used) != 0) return false;
        if (os::map_file(base_, committed_, to, 0) != 0) return false;
        os::advise(base_, committed_, os::advice::random); // as in grow()
        return true;
    };
    int copy = -1;
    if (os::open_temporary_file(directory_, &copy) == 0) {
        if (copy_to_file(copy)) {
            for (std::size_t i = 0; i < end; ++i) {
                if (!in_use(i)) runs_[i].returned = true;
            }
            os::close_file(fd_);
            fd_ = copy;
            return true;
        }
        os::close_file(copy);
    }
    // Second choice: anonymous memory, run by run through a buffer.
    char* const buffer = static_cast<char*>(os::reserve(run_bytes, os::page_size));
    if (buffer == nullptr || os::commit(buffer, run_bytes) != 0) return false;
    for (std::size_t at = 0; at < committed_; at += run_bytes) {
        const bool used = (at >> run_shift) < end && in_use(at >> run_shift);
        if (used) std::memcpy(buffer, base_ + at, run_bytes);
        if (os::map_anonymous(base_ + at, run_bytes) != 0) return false;
        if (used) std::memcpy(base_ + at, buffer, run_bytes);
    }
    os::release(buffer, run_bytes);
    os::close_file(fd_);
    fd_ = -1;
    return true;
}

} // namespace obase::heap
