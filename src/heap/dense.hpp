// SPDX-License-Identifier: MIT
//
// dense_heap: a class that the collector fills: HOT, COLD and whatever lies between.
//
// Objects lie without gaps, in the order in which the collector moved them, in 64 KiB runs that are
// bump-filled; one run is open per attribute set. A bit per granule says where objects begin, which
// is all there is per object: its size is the distance to the next beginning, or to the run's fill
// mark. Freed objects leave holes that are never filled; sparse runs are evacuated by the
// collector, and a run without live bytes goes back. New runs are taken at the lowest free address,
// so extents stay dense.
//
// Who may do what: allocate, undo, evacuation and return are the collector's alone; free() and
// size_of() are anybody's.
//
// Invariants
//   live bytes of a run == sum of the sizes of its objects that were not freed <= fill <= 64 KiB
//   the beginning of every object allocated since the run was opened stays marked, freed or not
//   when the last allocation is undone its mark stays and the fill mark goes back to it: a free()
//   of the object before it, at the same time, still finds where that object ends
//
// A file may lie beneath (class COLD). Storage is allocated before a run is opened, so a full disk
// means "no room", never SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/reserved_array.hpp"
#include "heap/size_class.hpp"
#include "os/platform.hpp"

namespace obase::heap {

struct dense_run {
    enum class state : std::uint8_t { unused, open, sealed };

    os::native_platform::atomic<std::uint64_t> live; // {objects 32, bytes 32}
    os::native_platform::atomic<std::uint32_t> fill; // bytes handed out from the front
    std::uint32_t high = 0;                          // marks may be set up to here (>= fill)
    os::native_platform::atomic<state> status;
    std::uint8_t set = 0;    // attribute_index of its objects
    bool returned = false;   // unused, and its pages or storage were given back
    bool evacuating = false; // the collector is moving its objects out
    std::uint64_t reserved = 0;
};
static_assert(sizeof(dense_run) == 32);

struct dense_counters {
    std::uint64_t live_bytes = 0;
    std::uint64_t live_objects = 0;
    std::uint64_t extent_bytes = 0;
    std::uint64_t hole_bytes = 0;
    std::uint64_t runs = 0;
    std::uint64_t evacuating_runs = 0;
};

class dense_heap {
  public:
    // `directory` nullptr: anonymous memory. Returns 0 or an errno value; *what says which step
    // failed.
    int create(char* base, std::size_t bytes, const char* directory, bool poison_freed,
               const char** what) noexcept;
    void destroy() noexcept;

    // Collector. size == object_size(...). nullptr: no room, disk full, or commit failed.
    void* allocate(std::size_t size, unsigned set) noexcept;
    // Collector, before anybody else saw the object.
    void undo(void* object) noexcept;
    // Any thread.
    void free(void* object) noexcept;
    // Any thread, of an object that is live or was (until its run is opened again).
    std::size_t size_of(const void* object) const noexcept;
    // Collector; 0 when no object begins there.
    std::size_t size_of_racy(const void* object) const noexcept;
    unsigned set_of(const void* object) const noexcept { return runs_[run_number(object)].set; }

    bool evacuating(const void* object) const noexcept {
        return runs_[run_number(object)].evacuating;
    }
    std::size_t select_evacuation(double max_live_fraction, std::size_t max_bytes) noexcept;
    std::size_t return_free_memory() noexcept;

    int backing_fd() const noexcept { return fd_; }
    dense_counters counters() const noexcept;
    std::size_t metadata_bytes() const noexcept;
    void walk_extents(void (*visit)(void*, char*, char*), void* context) const;
    const char* validate() const noexcept;

    void fork_prepare() noexcept;
    void fork_parent() noexcept;
    void fork_child() noexcept;

  private:
    static constexpr std::size_t words_per_run = run_bytes / granule / 64;

    std::size_t run_number(const void* object) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(object) - base_) >> run_shift;
    }
    std::size_t offset_in_run(const void* object) const noexcept {
        return static_cast<std::size_t>(static_cast<const char*>(object) - base_) & (run_bytes - 1);
    }
    os::native_platform::atomic<std::uint64_t>* marks_of(std::size_t run) const noexcept {
        return starts_.data() + run * words_per_run;
    }
    std::size_t next_mark(std::size_t run, std::size_t after, std::size_t limit) const noexcept;
    bool open_run(unsigned set) noexcept;
    bool grow() noexcept;
    std::size_t give_back(std::size_t first, std::size_t count) noexcept;
    void set_free_bit(std::size_t run, bool free) noexcept;
    std::size_t lowest_free() noexcept;
    bool copy_backing_in_child() noexcept;

    static constexpr std::uint32_t no_run = ~std::uint32_t{0};

    char* base_ = nullptr;
    std::size_t bytes_ = 0;
    bool poison_ = false;
    int fd_ = -1;
    char directory_[1024] = {};
    int fork_pipe_[2] = {-1, -1};
    reserved_array<dense_run> runs_;
    reserved_array<os::native_platform::atomic<std::uint64_t>> starts_;
    reserved_array<std::uint64_t> free_; // one bit per run that may be opened again
    std::size_t lowest_word_ = 0;        // no set bit of free_ before this word
    std::size_t free_runs_ = 0;
    os::native_platform::atomic<std::size_t> frontier_; // runs [0, frontier_) have been used
    std::size_t committed_ = 0;                         // bytes
    std::uint32_t open_[attribute_sets] = {};
};

} // namespace obase::heap
