// SPDX-License-Identifier: MIT
//
// Which memory ends with a thread: its stack and its thread-local storage.
//
// How a thread that ends finds the slots that it has in dynamic thread-local storage, and how the
// child of a fork finds those that lay in threads which it does not have.
// glibc gives their stacks to the next threads of the child or unmaps them (`reclaim_stacks` puts them
// on the list of unused stacks), and frees their dynamic thread-local storage with them, so what was
// a slot there is soon something else. docs/protocol.md, "fork and what other threads had", argues why
// the following finds all of it.
//
//     threads_at_fork others;
//     others.note();                     // before the fork, in the forking thread
//     fork();
//     others.for_each_lost_range(...);   // in the child, before it makes a thread
//
// The initial thread's stack and static thread-local storage are never reused: slots there stay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace obase::os {

// Where a thread lives. Trivial, for a thread's record.
struct thread_place {
    std::uintptr_t pointer = 0; // its control block; 0: not known
    // Equal: no memory ends with it, as with the initial thread.
    std::uintptr_t stack_low = 0;
    std::uintptr_t stack_high = 0;
};

// Of the calling thread. Any thread. `pointer` is 0 where the C library does not say. Cost: for the
// initial thread a comparison of addresses, for others a system call.
thread_place own_place() noexcept;

// The next block of the calling thread's dynamic thread-local storage, from entry `*at` (>= 1) of its vector
// on, which is moved past it. False: there is none.
bool next_own_dynamic_storage(std::size_t* at, std::uintptr_t* begin, std::uintptr_t* end) noexcept;

// Calls ends(begin, end) for the calling thread's dynamic thread-local storage, which is freed when the
// thread ends: that of modules that were loaded later, and too large for what the C library keeps beside a
// control block. Cost, where there is none: a look at each entry of the thread's vector.
template <class Ends>
void for_each_own_dynamic_storage(Ends&& ends) noexcept {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    for (std::size_t at = 1; next_own_dynamic_storage(&at, &begin, &end);) ends(begin, end);
}

class threads_at_fork {
  public:
    // Before a fork: notes which threads there are. Cost: a few system calls, and one for each thread.
    void note() noexcept;

    // In the child, calls lost(begin, end) for all memory of the threads that the child does not have.
    // for_each_known(known) calls known(id, place) for each of them whose place has been noted by itself;
    // for those without, the whole mapping around a thread's control block is taken for its stack. False:
    // some of the memory could not be found. Allocates nothing.
    template <class ForEachKnown, class Lost>
    bool for_each_lost_range(ForEachKnown&& for_each_known, Lost&& lost) noexcept {
        const consumer to{[](void* f, std::uintptr_t begin, std::uintptr_t end) {
                              (*static_cast<std::remove_reference_t<Lost>*>(f))(begin, end);
                          },
                          &lost};
        bool complete = noted_;
        for_each_known([&](std::uint32_t id, const thread_place& place) {
            complete = known_is_lost(id, place, to) && complete;
        });
        return others_are_lost(to) && complete;
    }

  private:
    struct consumer {
        void (*call)(void*, std::uintptr_t, std::uintptr_t);
        void* context;
        void operator()(std::uintptr_t begin, std::uintptr_t end) const {
            if (begin < end) call(context, begin, end);
        }
    };
    struct other {
        std::uint32_t id;
        std::uintptr_t pointer;
        bool found;
    };
    bool list_threads() noexcept;
    bool known_is_lost(std::uint32_t id, const thread_place& place, const consumer& lost) noexcept;
    bool others_are_lost(const consumer& lost) noexcept;
    bool dynamic_storage_is_lost(std::uintptr_t pointer, const consumer& lost) const noexcept;

    bool noted_ = false;
    std::vector<other> others_;             // but for the calling thread
    std::vector<std::size_t> module_bytes_; // of thread-local storage, by module number
};

} // namespace obase::os
