// SPDX-License-Identifier: MIT
//
// native_handles: handles of this process. The heap, the threads, the table of open runs and the collector, tied
// together; the functions of obase/handles.h and of malloc are thin over it.
//
// The heap is a heap::space. In its class NEW are the homes; movable and immovable objects never share a run, because
// they differ in an attribute (never_cold says here: never moved). Class 1, dense, has what moved. LARGE does not move.
// What the space cannot serve, and what the runtime itself needs, comes from the C library's malloc.
//
// Made at the first allocation, without allocating; never destroyed.
#pragma once

#include "handles/homes.hpp"
#include "handles/threads.hpp"
#include "heap/reserved_array.hpp"
#include "heap/space.hpp"
#include "os/platform.hpp"

#include <obase/handles.h>

#include <cstddef>
#include <cstdint>

namespace obase::handles {

using native = os::native_platform;

inline constexpr unsigned thread_slot = 2; // of heap::named_slots
inline constexpr unsigned dense_class = 1;
inline constexpr std::size_t least_alignment = 16;
inline constexpr unsigned movable_set = heap::attribute_index({4, false});
inline constexpr unsigned immovable_set = heap::attribute_index({4, true});
constexpr heap::attributes attributes_of(std::size_t alignment, bool movable) noexcept {
    return {static_cast<std::uint8_t>(std::countr_zero(alignment)), !movable};
}

// Nonzero in threads of the runtime, and while it is being made: malloc is then the C library's.
extern __thread unsigned inside_runtime __attribute__((tls_model("initial-exec")));
class runtime_memory {
  public:
    runtime_memory() noexcept { ++inside_runtime; }
    ~runtime_memory() { --inside_runtime; }
    runtime_memory(const runtime_memory&) = delete;
    runtime_memory& operator=(const runtime_memory&) = delete;
};

class native_handles {
  public:
    using record = handles_record<native>;
    using threads_type = handles_threads<native, native_handles>;
    using homes_type = homes<native, native_handles>;
    using table_type = forwarding_table<native>;

    // nullptr: there is no address space, or it is being made by this thread.
    static native_handles* get() noexcept {
        native_handles* const made = instance_.load_acquire();
        return made != nullptr ? made : make();
    }
    static native_handles* if_made() noexcept { return instance_.load_acquire(); }

    // Allocation, the part behind the fast paths. nullptr: there is none, errno is ENOMEM.
    void* allocate(std::size_t bytes, std::size_t alignment, bool movable) noexcept;
    void free(void* object) noexcept; // any of the space's, inside a scope if it may be movable
    bool contains(const void* address) const noexcept { return space_->contains(address); }
    bool is_movable(const void* object) const noexcept; // Precondition: contains(object)
    bool in_homes(const void* address) const noexcept {
        return reinterpret_cast<std::uintptr_t>(address) - base_ < bytes_;
    }
    // What the program may use of it. Precondition: contains(object).
    std::size_t usable_size(const void* object) const noexcept;
    // Makes the object `bytes` long where it is. False: it does not fit there, or would leave too much unused.
    // Precondition: as usable_size(); inside a scope if it may be movable.
    bool resize(void* object, std::size_t bytes) noexcept;

    threads_type& threads() noexcept { return threads_; }
    homes_type& objects() noexcept { return homes_; }
    heap::space& space() noexcept { return *space_; }

    // The calling thread's record, made at first. nullptr: there is no memory for it, and nothing moves any more.
    record* own_record() noexcept;
    static record* own_record_if_any() noexcept;

    // Host of homes, threads and evacuator.
    std::uint64_t base() const noexcept { return base_; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    native::atomic<std::uint8_t>& away(std::size_t run) const noexcept {
        return away_at(base_ + (run << heap::run_shift));
    }
    static native::atomic<std::uint8_t>& away_at(std::uint64_t address) noexcept {
        static_assert(sizeof(native::atomic<std::uint8_t>) == 1);
        return reinterpret_cast<native::atomic<std::uint8_t>&>(
            obase_handles_away[address >> heap::run_shift & 0xFFFFFF]);
    }
    native::atomic<table_type*>& table(std::size_t run) noexcept { return tables_[run]; }
    bool in_alias(std::uint64_t address) const noexcept {
        return address - aliases_ < alias_count << heap::run_shift;
    }
    bool alias_ready(std::uint64_t address) const noexcept {
        return ready_[(address - aliases_) >> heap::run_shift].load_acquire() != 0;
    }
    void free_to_run(std::uint64_t home) noexcept {
        space_->slabs().free_to_run(reinterpret_cast<void*>(home));
    }
    void free_dense(std::uint64_t address) noexcept {
        space_->free(reinterpret_cast<void*>(address));
    }
    void flush_own() noexcept;
    void flush(record& of) noexcept;

    void thread_ends(record& r) noexcept;

  private:
    static constexpr std::size_t alias_count = 1024;

    native_handles() noexcept;
    static native_handles* make() noexcept;
    bool set_up() noexcept;

    static constinit native::atomic<native_handles*> instance_;

    heap::space* space_ = nullptr;
    std::uint64_t base_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t aliases_ = 0;
    native::atomic<std::uint32_t> ready_[alias_count];
    heap::reserved_array<native::atomic<table_type*>> tables_; // by run
    threads_type threads_;
    homes_type homes_;
};

} // namespace obase::handles
