// SPDX-License-Identifier: MIT
//
// Checked frees of NEW: the address must be where a block of a run begins that is in use, and the block
// must be out.
//
// Where allocations are tracked (space_options::check_frees), a bit per granule says which blocks are out.
// Otherwise a block that is freed here is *stamped*: its second word gets a value that depends on its
// address. A block with its stamp may be free, or an object whose second word was never written: the
// lists of the calling thread tell. So what is found is a block that is in this thread's cache, or
// in a run that this thread has; the blocks of other threads are not looked at, since their lists
// change meanwhile. Blocks of eight bytes have no second word, and are looked for in the thread
// cache, which is short, when they look like a link.
#pragma once

#include <mutex>

#include "heap/slab.hpp"

namespace obase::heap {

namespace slab_detail {

inline constexpr std::size_t stamp_end = 2 * sizeof(std::uint64_t); // of a block with room for one

// Of a block that may be free.
OBASE_SEES_HIDDEN inline std::uint64_t word_of(const void* block, std::size_t number) noexcept {
    using any_bytes [[gnu::may_alias]] = const std::uint64_t;
    return static_cast<any_bytes*>(block)[number];
}

inline constexpr std::uint64_t poisoned_word = poison_byte * 0x0101'0101'0101'0101U;

inline bool lists(const void* first, const void* block) noexcept {
    for (; first != nullptr; first = next_of(first))
        if (first == block) return true;
    return false;
}

} // namespace slab_detail

// No address, and no small number.
template <class P>
std::uint64_t slab_heap<P>::stamp_of(const void* block) const noexcept {
    const std::uint64_t mixed =
        (reinterpret_cast<std::uintptr_t>(block) ^ reinterpret_cast<std::uintptr_t>(base_) << 13) *
        0x9E37'79B9'7F4A'7C15;
    return mixed | std::uint64_t{1} << 63;
}

template <class P>
bool slab_heap<P>::may_be_free(const void* block, std::size_t block_size) const noexcept {
    if (block_size < slab_detail::stamp_end) {
        const std::uint64_t link = slab_detail::word_of(block, 0);
        return link == 0 || link - reinterpret_cast<std::uintptr_t>(base_) < bytes_;
    }
    const std::uint64_t word = slab_detail::word_of(block, 1);
    return word == stamp_of(block) || word == slab_detail::poisoned_word;
}

// In the cache of this thread, or on a list of a run that it has. Those runs' lists change under
// the lock of the thread's heap or by this thread only, except for what others push on top of the
// remote list.
template <class P>
bool slab_heap<P>::listed_here(const slab_run& run, const void* block) const noexcept {
    thread_heap& heap = own_heap();
    if (&heap == &empty_thread_heap<P>) return false;
    const std::lock_guard hold(heap.lock);
    if (slab_detail::lists(heap.bin[run.bin.load_relaxed()].cached, block)) return true;
    if (run.block_size.load_relaxed() < slab_detail::stamp_end) return false; // thousands, perhaps
    const run_view now = run.word.view();
    if (now.state != run_state::attached || now.owner != heap.id) return false;
    return slab_detail::lists(run.free.load_relaxed(), block) ||
           (now.head != 0 && slab_detail::lists(memory_of(run) + (now.head - 1) * granule, block));
}

template <class P>
void slab_heap<P>::note_allocated(const void* block) noexcept {
    const std::size_t at = granule_of(block);
    out_[at / 64].fetch_or_relaxed(std::uint64_t{1} << (at % 64));
}

template <class P>
bool slab_heap<P>::begins_block(const void* address) const noexcept {
    const std::size_t offset = offset_of(address);
    if ((offset >> run_shift) >= frontier_.load_acquire()) return false;
    const slab_run& run = run_of(address);
    if (run.word.view().state == run_state::free) return false;
    const std::size_t size = run.block_size.load_relaxed();
    const std::size_t in_run = offset & (run_bytes - 1);
    return size != 0 && in_run % size == 0 && in_run + size <= run_bytes;
}

template <class P>
bool slab_heap<P>::is_out(const void* block) const noexcept {
    const std::size_t at = granule_of(block);
    return (out_[at / 64].load_relaxed() >> (at % 64) & 1) != 0;
}

template <class P>
free_result slab_heap<P>::free_checked(void* block) noexcept {
    const std::size_t offset = offset_of(block);
    if ((offset >> run_shift) >= frontier_.load_acquire()) return free_result::no_object;
    const slab_run& run = run_of(block);
    if (run.word.view().state == run_state::free) return free_result::no_object;
    const std::size_t size = run.block_size.load_relaxed();
    const std::size_t in_run = offset & (run_bytes - 1);
    if (in_run % size != 0 || in_run + size > run_bytes) return free_result::no_object;
    if (tracks_) {
        const std::size_t at = granule_of(block);
        const std::uint64_t bit = std::uint64_t{1} << (at % 64);
        if ((out_[at / 64].fetch_and_relaxed(~bit) & bit) == 0) return free_result::freed_before;
    } else if (may_be_free(block, size) && listed_here(run, block)) {
        return free_result::freed_before;
    }
    // What is overwritten is known by that.
    if (size >= slab_detail::stamp_end && !overwrites(poison_))
        static_cast<std::uint64_t*>(block)[1] = stamp_of(block);
    if (poison_ != poisoning::none)
        free_poisoned(block);
    else
        free(block);
    return free_result::done;
}

} // namespace obase::heap
