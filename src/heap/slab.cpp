// SPDX-License-Identifier: MIT
#include "heap/slab_functions.hpp"

#include "os/thread.hpp"

namespace obase::heap {

template class slab_heap<native>;

#define OBASE_FOUR_EMPTY                                                                           \
    &empty_thread_heap<native>, &empty_thread_heap<native>, &empty_thread_heap<native>,            \
        &empty_thread_heap<native>
__thread thread_heap<native>* thread_heaps[max_spaces] = {OBASE_FOUR_EMPTY, OBASE_FOUR_EMPTY,
                                                          OBASE_FOUR_EMPTY, OBASE_FOUR_EMPTY};
#undef OBASE_FOUR_EMPTY
static_assert(max_spaces == 16);

namespace {

// Spaces alive, for the thread-exit hook. Taken and left under this lock.
std::mutex spaces_lock;
slab_heap<native>* spaces[max_spaces];

void exit_hook() noexcept {
    for (unsigned slot = 0; slot < max_spaces; ++slot) {
        if (thread_heaps[slot] == &empty_thread_heap<native>) continue;
        // The space lives: destroying it requires that no thread uses it, and this one does.
        spaces[slot]->thread_exit();
    }
}

} // namespace

bool thread_memory<native>::arm_exit() noexcept {
    return os::add_exit_hook(exit_hook) && os::arm_exit_hooks();
}

void thread_memory<native>::enrol(unsigned slot, slab_heap<native>* heap) noexcept {
    const std::lock_guard hold(spaces_lock);
    spaces[slot] = heap;
}

} // namespace obase::heap
