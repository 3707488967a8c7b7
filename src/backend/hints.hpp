// SPDX-License-Identifier: MIT
//
// backend::hints: tells the kernel after a window which memory is cold and which is hot.
//
// What it is:
//   COLD   MADV_COLD on what is new there, was filled or was touched since it was last advised;
//          MADV_PAGEOUT, when the policy allows it, on what has not been paged out yet and was not
//          touched in this window.
//   HOT    MADV_HUGEPAGE, by option, on new extents, whole 2 MiB units; then MADV_COLLAPSE, because
//          the mover has filled them with small pages by then, and the kernel's own thread
//          (khugepaged) makes only some 16 MiB of them huge in ten seconds. The units have no holes,
//          so no memory is added.
//   LARGE  objects that are never copied: the collector reports each one it visits with
//          note_large(), and a cold one is advised like COLD.
// Every hint has its own switch. A hint never changes what memory holds.
//
// When not to use it: in the modes off, observe and move, which give no hints; and for giving free
// memory back (heap::space::return_free_memory).
//
// File-backed COLD: MADV_PAGEOUT unmaps pages of a shared file mapping, but the page cache keeps
// them until they are clean and dropped. So: start the write-back of everything, then per piece
// wait for it, unmap, drop. The wait comes before the drop because a page whose write-back failed
// is marked clean, and dropping it would lose data: after any error the piece is left alone.
// After a fork COLD may lie over several files. What lies over a frozen one (heap/dense.hpp) is mapped
// privately; the same three steps are right for it: its clean pages go, and pages that were written
// since the fork are anonymous, which MADV_PAGEOUT swaps out or leaves and the other two do not see.
// Where this process has no descriptor of the file, MADV_COLD is all that is given.
//
// Failures: EIO or ENOSPC ends all hints for good with one message; a refusal that will repeat
// (EINVAL, EPERM, ENOSYS) ends that kind of hint with one message; anything else is counted and
// tried again in a later window. The program always goes on. MADV_COLLAPSE is an extra: that a
// kernel does not have it is worth no message, and that a unit cannot be made huge is no failure. Where
// that may pass (no free huge page, a page in use) it is tried again after the next window.
//
// Pauses: work is cut into pieces of `piece_bytes`; between two pieces the caller's `go_on` is
// asked, so that the collector can keep its share of the processor and obey a stop. What is left is
// done after the next window.
//
// Threads: the collector thread only.
#pragma once

#include "backend/intervals.hpp"

#include <obase/options.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace obase::backend {

struct hint_switches {
    bool cold = true;
    bool page_out = true;
    bool huge = false;
};

inline hint_switches hint_switches_of(const options& settings) noexcept {
    return {settings.hint_cold, settings.hint_pageout, settings.hint_hugepage};
}

struct hint_totals { // since creation; the collector copies them into its statistics
    std::uint64_t cold_bytes = 0;
    std::uint64_t page_out_bytes = 0;
    std::uint64_t huge_bytes = 0;
    std::uint64_t collapsed_bytes = 0;
    std::uint64_t written_bytes = 0;
    std::uint64_t failures = 0;
    bool stopped = false;
};

// The memory of one heap as hints see it.
struct heap_view {
    intervals extents;            // committed, not empty
    intervals touched;            // touched in the window that ended
    std::uintptr_t file_base = 0; // address of offset 0 of each file
    struct file_stretch {
        std::uintptr_t begin;
        std::uintptr_t end;
        int fd; // -1: not to be written back from here
    };
    std::vector<file_stretch> files; // in address order; none: anonymous memory
};

template <class Space>
heap_view view_of(Space& space, unsigned cls) {
    heap_view view;
    auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
    space.for_each_extent(
        cls, [&](auto* begin, auto* end) { view.extents.add(address(begin), address(end)); });
    space.for_each_touched_run(
        cls, [&](auto* begin, auto* end) { view.touched.add(address(begin), address(end)); });
    space.for_each_backing(cls, [&](auto* begin, auto* end, int fd) {
        view.files.push_back({address(begin), address(end), fd});
    });
    view.file_base = address(space.range_begin(cls));
    return view;
}

class hints {
  public:
    using asker = std::function<bool()>;                       // false = stop for this window
    using messenger = std::function<void(const std::string&)>; // one line for the user

    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t huge_bytes = std::size_t{2} << 20;
    static constexpr std::size_t piece_bytes = std::size_t{16} << 20;
    static constexpr std::uint64_t large_memory_windows = 64;

    explicit hints(messenger say) : say_(std::move(say)) {}

    // [begin, end) in COLD was written by the mover in this window.
    void note_filled(const void* begin, std::size_t bytes) noexcept;

    // A scan visited this large object. One that scans no longer visit is forgotten after
    // large_memory_windows windows; nothing is lost but the knowledge that it was advised.
    void note_large(const void* object, std::size_t bytes, bool cold) noexcept;

    // After a window, before the touched pages are cleared.
    template <class Space>
    void after_window(Space& space, unsigned hot_class, unsigned cold_class,
                      const hint_switches& switches, bool page_out_allowed,
                      const asker& go_on = {}) noexcept try {
        after_window(view_of(space, hot_class), view_of(space, cold_class), switches,
                     page_out_allowed, go_on);
    } catch (const std::bad_alloc&) {
        forget();
    }
    void after_window(const heap_view& hot, const heap_view& cold, const hint_switches& switches,
                      bool page_out_allowed, const asker& go_on = {}) noexcept;

    // After a window in a mode that gives no hints. What was advised may have been touched, freed or
    // filled since, and no view says so: everything is forgotten, and advised again when hints come
    // back. Keeps the table of large objects to what one window saw.
    void skip_window() noexcept;

    const hint_totals& totals() const noexcept { return totals_; }

  private:
    enum kind : unsigned { kind_cold, kind_page_out, kind_huge, kind_count };
    struct large_state {
        std::size_t bytes = 0;
        std::uint64_t seen_in = 0; // window number
        bool cold = false;
        bool advised = false;
        bool paged_out = false;
    };

    void forget_all() noexcept;
    void forget() noexcept;
    bool usable(kind which) const noexcept { return !totals_.stopped && !refused_[which]; }
    bool accepted(const char* call, int error, bool* refused = nullptr);
    intervals advise(kind which, const intervals& todo, const asker& go_on);
    intervals page_out_file(const heap_view& view, const intervals& todo, const asker& go_on);
    void hint_cold_heap(const heap_view& view, const hint_switches& switches, bool page_out_allowed,
                        const asker& go_on);
    void collapse(const intervals& todo, const asker& go_on);
    void hint_large(const hint_switches& switches, bool page_out_allowed, const asker& go_on);

    messenger say_;
    hint_totals totals_;
    bool refused_[kind_count] = {};
    intervals filled_;
    intervals advised_;   // COLD memory that MADV_COLD has seen in its present state
    intervals paged_out_; // COLD memory that MADV_PAGEOUT has seen in its present state
    intervals huge_;      // HOT memory that MADV_HUGEPAGE has seen
    intervals collapsed_; // HOT memory for which MADV_COLLAPSE has done what it can
    std::unordered_map<std::uintptr_t, large_state> large_;
    std::uint64_t window_ = 0;
};

} // namespace obase::backend
