// SPDX-License-Identifier: MIT
#include "handles/native.hpp"

#include "heap/slab_functions.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"

#include <algorithm>
#include <cerrno>
#include <new>

unsigned char obase_handles_away[1U << 24];
unsigned char obase_handles_poll_wanted;

namespace obase::handles {

__thread unsigned inside_runtime;

namespace {

__thread native_handles::record* record_of_thread;

constexpr std::size_t mib = std::size_t{1} << 20;
// Of each class. All of them together are to be shorter than the terabyte in which runs have bytes of their own.
constexpr std::size_t most_range = std::size_t{256} << 30;
constexpr std::size_t least_range = 64 * mib;

std::size_t first_range() noexcept {
    os::machine here;
    os::read_machine(&here);
    std::size_t range = std::clamp<std::size_t>(std::bit_ceil(here.ram_bytes * 4),
                                                std::size_t{64} << 30, most_range);
    // Of what there is, half: the program has other uses for its addresses.
    while (range > least_range && range > os::address_space_limit() / 8) range /= 2;
    return range;
}

alignas(64) unsigned char storage[sizeof(native_handles)];
native::atomic<std::uint32_t> making; // 0 not yet, 1 a thread makes it, 2 made or impossible

void thread_end_hook() noexcept {
    if (record_of_thread == nullptr) return;
    native_handles::if_made()->thread_ends(*record_of_thread);
    record_of_thread = nullptr;
}

} // namespace

constinit native::atomic<native_handles*> native_handles::instance_{nullptr};

native_handles::native_handles() noexcept
    : threads_(*this, reinterpret_cast<native::atomic<std::uint8_t>&>(obase_handles_poll_wanted)),
      homes_(*this) {}

native_handles* native_handles::make() noexcept {
    if (inside_runtime != 0) return nullptr;
    std::uint32_t not_yet = 0;
    if (!making.cas_acq_rel(not_yet, 1)) {
        while (making.load_acquire() == 1) native::yield();
        return instance_.load_acquire();
    }
    const runtime_memory own;
    auto* const fresh = ::new (storage) native_handles;
    if (fresh->set_up()) instance_.store_release(fresh); // pairs with get()
    making.store_release(2);
    return instance_.load_acquire();
}

bool native_handles::set_up() noexcept {
    threads_.all().set_fenced(!native::has_membarrier());
    for (std::size_t range = first_range(); space_ == nullptr && range >= least_range; range /= 2) {
        heap::space_options options;
        options.classes = 2;
        options.file_classes = 0;
        options.range_bytes = range;
        options.thread_slot = thread_slot;
        space_ = heap::space::create(options, nullptr);
    }
    if (space_ == nullptr) return false;
    base_ = reinterpret_cast<std::uint64_t>(space_->range_begin(heap::new_class));
    bytes_ = space_->range_bytes();
    void* const aliases = os::reserve(alias_count << heap::run_shift, heap::run_bytes);
    aliases_ = reinterpret_cast<std::uint64_t>(aliases);
    return aliases != nullptr && tables_.reserve(bytes_ >> heap::run_shift);
}

void* native_handles::allocate(std::size_t bytes, std::size_t alignment, bool movable) noexcept {
    // One byte more, so that the address behind the object's end belongs to it.
    const std::size_t size = bytes + (movable && bytes < heap::max_small_size ? 1 : 0);
    return space_->allocate(size, attributes_of(std::max(alignment, least_alignment), movable));
}

bool native_handles::is_movable(const void* object) const noexcept {
    return in_homes(object) && !heap::attributes_at(space_->slabs().set_of(object)).never_cold;
}

void native_handles::free(void* object) noexcept {
    const auto home = reinterpret_cast<std::uint64_t>(object);
    if (in_homes(object) && away_at(home).load_acquire() != at_home) {
        homes_.free(home);
        return;
    }
    space_->free(object);
}

std::size_t native_handles::usable_size(const void* object) const noexcept {
    const std::size_t size = space_->usable_size(object);
    return is_movable(object) ? size - 1 : size;
}

bool native_handles::resize(void* object, std::size_t bytes) noexcept {
    const std::size_t now = usable_size(object);
    if (!in_homes(object)) return bytes <= now && bytes >= now / 2;
    if (away_at(reinterpret_cast<std::uint64_t>(object)).load_acquire() != at_home)
        return bytes <= now && bytes >= now / 2;
    const heap::slab_heap<native>& slabs = space_->slabs();
    const std::size_t run = (reinterpret_cast<std::uint64_t>(object) - base_) >> heap::run_shift;
    const std::size_t block = slabs.block_size(run);
    const std::size_t size = bytes + (is_movable(object) ? 1 : 0);
    if (size > block || size < block / 2) return false;
    const std::size_t alignment = std::size_t{1}
                                  << heap::attributes_at(slabs.set_of(object)).log2_alignment;
    space_->slabs().note_size(object, heap::round_up(size, alignment));
    return true;
}

void native_handles::flush_own() noexcept {
    space_->slabs().flush_movable(*heap::thread_heaps[thread_slot]);
}

void native_handles::flush(record& of) noexcept {
    if (of.cache == nullptr) return;
    auto** const heap = static_cast<heap::thread_heap<native>**>(of.cache);
    space_->slabs().flush_movable(**heap);
}

native_handles::record* native_handles::own_record_if_any() noexcept { return record_of_thread; }

native_handles::record* native_handles::own_record() noexcept {
    if (record_of_thread != nullptr) [[likely]]
        return record_of_thread;
    const runtime_memory own;
    if (!os::add_exit_hook(thread_end_hook) || !os::arm_exit_hooks()) return nullptr;
    auto* const mine = static_cast<record*>(mobility::claim_record(
        threads_.all(), os::thread_id(), []() -> record* { return new (std::nothrow) record; }));
    if (mine == nullptr) return nullptr;
    mine->nested = 0;
    mine->offline = 0;
    mine->pins_held = 0;
    mine->service.lock();
    mine->cache = &heap::thread_heaps[thread_slot];
    mine->service.unlock();
    record_of_thread = mine;
    return mine;
}

// Blocks of movable objects that are in the thread's caches go back while it is inside, as in a poll.
void native_handles::thread_ends(record& r) noexcept {
    mobility::enter_scope(static_cast<mobility::thread_record<native>&>(r), threads_.all().epoch());
    space_->thread_exit();
    r.service.lock();
    r.cache = nullptr;
    r.service.unlock();
    threads_.restore(r, {0, 0, false, 0});
    threads_.all().release(r);
}

} // namespace obase::handles
