// SPDX-License-Identifier: MIT
//
// obase::place::group and obase::place::near_allocator<T>: containers whose nodes lie together.
//
//     obase::place::group bucket;
//     std::pmr::list<entry> entries(&bucket);                       // all its nodes share pages
//     std::list<entry, obase::place::near_allocator<entry>> others{obase::place::near_allocator<entry>(bucket)};
//
// What is allocated lies where objects that are put in one obase::group do (obase/allocation_options.hpp), and
// does not move: no guide refers to it. It pays where several nodes of one container are used in a row, and more
// containers than fit into the caches are in use (docs/placement.md). For containers of a few large arrays it
// does nothing that std::allocator does not: pieces above 4096 bytes are ordinary objects.
//
// Threads: any number may allocate from and free into one group at once. Errors: std::bad_alloc. Cost: an
// allocation takes a lock, which is shared by a 64th of all groups of the process.
#pragma once

#include <obase/language.hpp>

#include <obase/allocation_options.hpp>
#include <obase/arming.hpp>
#include <obase/errors.hpp>

#include <cstddef>
#include <memory_resource>

namespace obase::place {

// Memory of one group. Precondition of its end: all that was allocated from it has been freed, as for any
// memory resource; it may then be used no more.
class group final : public std::pmr::memory_resource {
  public:
    group() = default;
    // Joins the group of a live object of obase's, or begins one there.
    explicit group(const void* near) noexcept : near_(near) {}
    group(const group&) = delete;
    group& operator=(const group&) = delete;

  private:
    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
        allocation_options how{.alignment = alignment};
        if (near_ != nullptr)
            how.near = near_;
        else
            how.in = &name_;
        void* const memory = arming::allocate(bytes, how);
        if (memory == nullptr) errors::out_of_memory();
        return memory;
    }
    void do_deallocate(void* memory, std::size_t, std::size_t) override {
        arming::deallocate(memory);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
        return this == &other; // else elements would go over to a container whose group ends first
    }

    const void* near_ = nullptr;
    obase::group name_;
};

// The same for containers that take an allocator. Copies refer to the group, which outlives them.
template <class T>
class near_allocator {
  public:
    using value_type = T;

    explicit near_allocator(std::pmr::memory_resource& group) noexcept : group_(&group) {}
    template <class U>
    near_allocator(const near_allocator<U>& other) noexcept : group_(other.resource()) {}

    T* allocate(std::size_t count) {
        if (count > PTRDIFF_MAX / sizeof(T)) errors::out_of_memory();
        return static_cast<T*>(group_->allocate(count * sizeof(T), alignof(T)));
    }
    void deallocate(T* memory, std::size_t count) noexcept {
        group_->deallocate(memory, count * sizeof(T), alignof(T));
    }
    std::pmr::memory_resource* resource() const noexcept { return group_; }

    template <class U>
    bool operator==(const near_allocator<U>& other) const noexcept {
        return *group_ == *other.resource();
    }

  private:
    std::pmr::memory_resource* group_;
};

} // namespace obase::place
