// SPDX-License-Identifier: MIT
//
// tracked_heap: memory for tests under the deterministic scheduler, whose blocks know whether they
// are live. The oracle for "no thread uses freed memory".
//
// Allocate and free with addresses that are never used twice within an execution, or, to provoke
// ABA, always as soon as possible (last freed, first reused). testing::access() is a step of the
// schedule which fails unless its bytes lie in one live block; so does, without being asked, every
// operation on a deterministic atomic that lies in tracked memory. A report names the block, and
// the thread and the step that freed it.
//
// Example:
//     testing::tracked_heap heap;
//     auto* n = heap.create<node>("node", 42);
//     testing::spawn([&] { testing::access(n, sizeof *n, false); use(n->value); });
//     testing::spawn([&] { heap.destroy(n); });
//     testing::run(); // fails in some schedule: "use after free of node#1 (freed by thread 2 ...)"
//
// Freed memory is overwritten (unless .fill_freed is off), is still mapped, and may be read by
// access_racy(), racy_copy() and, inside a permit_freed, by atomics. Unmapped memory may not.
//
// Only within an exploration, and for a few MiB.
#pragma once

#include "testing/deterministic.hpp"

#include <new>
#include <utility>

namespace obase::testing {

enum class address_reuse {
    never,
    last_freed_first, // a freed block of exactly this size and alignment, if there is one
};

class tracked_heap {
  public:
    struct options {
        address_reuse reuse = address_reuse::never;
        bool fill_freed = true;
    };

    tracked_heap() : tracked_heap(options{}) {}
    explicit tracked_heap(options o);

    // Both are steps of the schedule. Stores of the freeing thread to the block are taken as done;
    // a store that another thread still has in its buffer is a failure, as is a second free.
    [[nodiscard]] void* allocate(std::size_t size, const char* name = "block",
                                 std::size_t alignment = 16);
    void free(void* address);

    // Marks memory inside the arena as given back to the OS: every later access fails, racy ones
    // and optimistic ones too. The blocks in it must have been freed.
    void unmap(void* address, std::size_t size);

    bool live(const void* address) const;
    std::size_t live_blocks() const;
    // How many times the block at this address has been allocated: tells reuse from survival.
    unsigned generation(const void* address) const;

    template <class T, class... Arguments>
    [[nodiscard]] T* create(const char* name, Arguments&&... arguments) {
        void* memory = allocate(sizeof(T), name, alignof(T) < 16 ? 16 : alignof(T));
        return ::new (memory) T(std::forward<Arguments>(arguments)...);
    }
    template <class T>
    void destroy(T* object) {
        object->~T();
        free(object);
    }

  private:
    unsigned id_;
    options options_;
};

// A step that requires [address, address + size) to lie in one live block.
void access(const void* address, std::size_t size, bool write);

// A step that requires it to be mapped and inside one block, live or freed: for reads that are
// validated afterwards, and for a mover's copy.
void access_racy(const void* address, std::size_t size, bool write);

// Copies word by word, each word a relaxed load and a relaxed store and so two steps: what the
// mover's racy_copy does. The source may be freed meanwhile, the target must be live. Both
// addresses and the size must be multiples of 8.
void racy_copy(void* target, const void* source, std::size_t size);

// While it lives, atomics in freed (but mapped) memory may be read by this virtual thread, and a
// compare-exchange there may fail; changing freed memory remains a failure. For optimistic readers.
class permit_freed {
  public:
    permit_freed();
    ~permit_freed();
    permit_freed(const permit_freed&) = delete;
    permit_freed& operator=(const permit_freed&) = delete;
};

} // namespace obase::testing
