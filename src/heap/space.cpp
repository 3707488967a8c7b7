// SPDX-License-Identifier: MIT
#include "heap/space.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <new>

#include "heap/sanitized.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

namespace obase::heap {
namespace {

constexpr std::size_t mib = 1U << 20;
constexpr std::size_t gib = std::size_t{1} << 30;

// The base lies on a multiple of what any layer above keys its tables by (SODA: 16 MiB per leaf).
constexpr std::size_t base_alignment = 64 * mib;

std::size_t automatic_range() noexcept {
    // Sanitizers keep a shadow of everything mapped, and confine where it may lie.
    if (sanitized) return 4 * gib;
    os::machine here;
    os::read_machine(&here);
    return std::clamp<std::size_t>(std::bit_ceil(here.ram_bytes * 4), 64 * gib, 4096 * gib);
}

// What lies there is a part of what programs have, and its tables take more than those of the others.
std::size_t near_bytes(std::size_t range) noexcept {
    return std::max(std::min(range, gib), range / 4);
}

void say(std::string* why_not, const char* text) noexcept {
    if (why_not == nullptr) return;
    try {
        *why_not = text;
    } catch (const std::bad_alloc&) {
        why_not->clear();
    }
}

std::mutex slots_lock;
bool slot_taken[max_spaces];

int take_slot(const space_options& options) noexcept {
    const bool named = options.thread_slot < named_slots && !options.check_frees &&
                       poisoning_here(options.poison_freed) == poisoning::none;
    const unsigned first = named ? options.thread_slot : named_slots;
    const unsigned end = named ? first + 1 : max_spaces;
    const std::lock_guard hold(slots_lock);
    for (unsigned i = first; i < end; ++i) {
        if (!slot_taken[i]) {
            slot_taken[i] = true;
            return static_cast<int>(i);
        }
    }
    return -1;
}

void leave_slot(unsigned slot) noexcept {
    const std::lock_guard hold(slots_lock);
    slot_taken[slot] = false;
}

constexpr std::size_t space_bytes = round_up(sizeof(space), os::page_size);

} // namespace

space* space::create(const space_options& options, std::string* why_not,
                     const std::string space_options::** bad_directory) noexcept {
    if (bad_directory != nullptr) *bad_directory = nullptr;
    if (options.classes < 2 || options.classes > max_classes) {
        say(why_not, "the number of classes must be 2 to 15");
        return nullptr;
    }
    const std::uint32_t in_files = (options.cold_directory.empty() ? 0 : options.file_classes) |
                                   (options.hot_directory.empty() ? 0 : options.hot_file_classes);
    if ((in_files >> options.classes) != 0 || (in_files & 1U) != 0) {
        say(why_not,
            "a class that is to lie in a file does not exist, or is the one of new objects");
        return nullptr;
    }
    void* const memory = os::reserve(space_bytes, os::page_size);
    if (memory == nullptr || os::commit(memory, space_bytes) != 0) {
        if (memory != nullptr) os::release(memory, space_bytes);
        say(why_not, "no memory for the space itself");
        return nullptr;
    }
    const int slot = take_slot(options);
    if (slot < 0) {
        os::release(memory, space_bytes);
        say(why_not, "too many spaces in this process");
        return nullptr;
    }
    space* const made = new (memory) space;
    made->slot_ = static_cast<unsigned>(slot);
    if (!made->set_up(options, why_not, bad_directory)) {
        destroy(made);
        return nullptr;
    }
    return made;
}

bool space::set_up(const space_options& options, std::string* why_not,
                   const std::string space_options::** bad_directory) noexcept {
    classes_ = options.classes;
    const bool automatic = options.range_bytes == 0;
    std::size_t range =
        automatic ? automatic_range() : std::bit_ceil(std::max(options.range_bytes, mib));
    const std::size_t floor = automatic ? 64 * mib : range;
    // The side tables need address space too, at most an eighth of the ranges: ask for room for
    // both, so that a limit is met here and not half way through the tables.
    for (; base_ == nullptr; range /= 2) {
        if (range < floor) {
            say(why_not, "no address space for the heap (OBASE_HEAP_RESERVE, RLIMIT_AS, or "
                         "vm.max_map_count)");
            return false;
        }
        const std::size_t ranges = range * (classes_ + 1) + near_bytes(range);
        void* const probe = os::reserve(ranges + ranges / 8, base_alignment);
        if (probe == nullptr) continue;
        os::release(static_cast<char*>(probe) + ranges, ranges / 8);
        base_ = static_cast<char*>(probe);
        range_bytes_ = range;
        total_bytes_ = ranges;
    }
    asan::add_leak_roots(base_, total_bytes_);
    poison_ = poisoning_here(options.poison_freed);
    check_ = options.check_frees;
    quick_free_bytes_ = poison_ != poisoning::none || check_ ? 0 : range_bytes_;
    quick_allocate_bytes_ = hides(poison_) || check_ ? 0 : max_small_size;
    quick_near_bytes_ = hides(poison_) ? 0 : max_near_size;
    shift_ = static_cast<unsigned>(std::countr_zero(range_bytes_));
    bool ok = slabs_.create(base_, range_bytes_, slot_, check_, poison_) &&
              large_.create(range_begin(classes_), range_bytes_, poison_) && begun_.create();
    const std::size_t near = near_bytes(range_bytes_);
    // Whole units of NEAR. Of a range that is hardly larger nothing is left for what is used once.
    const std::size_t once = near - std::min(round_up(near / 4 * 3, near_unit_bytes), near);
    once_offset_ = offset_of(range_begin(near_class())) + near - once;
    const char* what_once = "";
    ok = ok && near_.create(range_begin(near_class()), near - once, poison_) &&
         (once == 0 || once_.create(base_ + once_offset_, once, nullptr, poison_, &what_once) == 0);
    for (unsigned i = 0; i <= near_class(); ++i) ok = ok && touched_[i].create(range_bytes_);
    if (!ok) {
        say(why_not, "no address space for the side tables (RLIMIT_AS, or vm.max_map_count)");
        return false;
    }
    for (unsigned cls = 1; cls < classes_; ++cls) {
        const bool hot = (options.hot_file_classes >> cls & 1U) != 0;
        const std::string space_options::* const named =
            hot ? &space_options::hot_directory : &space_options::cold_directory;
        const std::string& directory = options.*named;
        const bool in_file = (hot || (options.file_classes >> cls & 1U) != 0) && !directory.empty();
        const char* what = "";
        const int error = dense_[cls - 1].create(
            range_begin(cls), range_bytes_, in_file ? directory.c_str() : nullptr, poison_, &what);
        if (error == 0) {
            if (in_file && !hot) dense_[cls - 1].fit_to_pages();
            continue;
        }
        if (in_file && bad_directory != nullptr) *bad_directory = named;
        if (why_not != nullptr) {
            try {
                *why_not = std::string(in_file ? (hot ? "hot directory " : "cold directory ") +
                                                     directory + ": "
                                               : "") +
                           what + ": " + std::strerror(error);
            } catch (const std::bad_alloc&) {
                why_not->clear();
            }
        }
        return false;
    }
    return true;
}

void space::destroy(space* s) noexcept {
    if (s == nullptr) return;
    s->slabs_.destroy();
    s->large_.destroy();
    s->near_.destroy();
    s->once_.destroy();
    s->begun_.destroy();
    for (dense_heap<native>& dense : s->dense_) dense.destroy();
    for (touched_map& map : s->touched_) map.destroy();
    if (s->base_ != nullptr) {
        asan::remove_leak_roots(s->base_, s->total_bytes_);
        os::release(s->base_, s->total_bytes_);
    }
    const unsigned slot = s->slot_;
    s->~space();
    os::release(s, space_bytes);
    leave_slot(slot);
}

void* space::allocate_elsewhere(std::size_t size, attributes attr) noexcept {
    const std::size_t rounded = object_size(size, attr);
    const unsigned set = attribute_index(attr);
    void* object = nullptr;
    if (rounded - 1 < max_small_size) {
        object = slabs_.allocate(rounded, set);
        if (object != nullptr && check_) slabs_.note_allocated(object);
    } else if (rounded >=
               size) { // a size near the end of the address space wraps when it is rounded
        object = large_.allocate(rounded, set);
    }
    if (object == nullptr)
        failures_.fetch_add_relaxed(1);
    else if (hides(poison_))
        asan::show(object, rounded);
    return object;
}

namespace {
// Threads that allocate at once use different groups, as far as they go.
unsigned place_of_this_thread(unsigned places) noexcept {
    static native::atomic<unsigned> threads;
    thread_local const unsigned mine = threads.fetch_add_relaxed(1);
    return mine % places;
}
} // namespace

// Of an address in the space. What was freed in NEW is known only where frees are checked.
bool space::has_neighbours(const void* object) const noexcept {
    const unsigned cls = class_of(object);
    if (cls == new_class) return slabs_.begins_block(object) && (!check_ || slabs_.is_out(object));
    return cls != classes_ && info(object).size != 0;
}

// nullptr: it is not born where what is expected lies.
void* space::allocate_born(std::size_t size, attributes attr, expectation expect,
                           bool guided) noexcept {
    dense_heap<native>* const heap = born_in(attr, expect, guided);
    if (heap == nullptr) return nullptr;
    bool opened = false;
    void* const object = heap->allocate_born(size, attribute_index(attr), &opened);
    if (opened) born_bytes_.fetch_add_relaxed(run_bytes);
    return object;
}

void* space::allocate_placed_elsewhere(std::size_t size, attributes attr, const void* near,
                                       group_name* in, expectation asked_for, bool guided,
                                       neighbour* found) noexcept {
    const std::size_t rounded = object_size(size, attr);
    const expectation expect =
        static_cast<unsigned>(asked_for) < expectations ? asked_for : expectation::nothing;
    const bool asked = near != nullptr || in != nullptr;
    void* object = nullptr;
    *found = asked ? neighbour::missed : neighbour::none;
    if (rounded >= size && rounded <= max_near_size) {
        const unsigned set = near_set(attr, expect);
        if (!asked && expect != expectation::nothing)
            object = allocate_born(rounded, attr, expect, guided);
        if (object != nullptr) {
            // that was all
        } else if (in != nullptr) {
            object = near_.join(word_of(in), rounded, set);
        } else if (near != nullptr && contains(near)) {
            if (in_near(near)) {
                object = near_.join(near, rounded, set);
            } else if (has_neighbours(near)) {
                if (auto* const name = begun_.of(near); name != nullptr)
                    object = near_.join(*name, rounded, set);
            }
            // A live object of LARGE has no neighbours, and is no mistake.
            if (object == nullptr &&
                (class_of(near) == classes_ ? info(near).size == 0 : !has_neighbours(near)))
                *found = neighbour::no_object;
        }
        if (object == nullptr && expect != expectation::nothing) {
            begun_groups::name_word& group =
                expected_[static_cast<unsigned>(expect)][place_of_this_thread(expected_groups)];
            if (attr.log2_alignment <= 3 && quick_near_bytes_ != 0)
                object = near_.join_at_hand(group, rounded, attribute_index(attr),
                                            static_cast<unsigned>(expect));
            if (object == nullptr) object = near_.join(group, rounded, set);
        } else if (object != nullptr && asked)
            *found = neighbour::found;
    }
    if (object == nullptr) return allocate(size, attr);
    if (const bool hidden = hides(poison_); hidden) asan::show(object, rounded);
    return object;
}

void space::free_elsewhere(void* object) noexcept {
    if (object == nullptr) return;
    native::check(contains(object), "free of an address that is not in the space");
    if (class_of(object) == owned_class_) {
        owner_->free(object);
        return;
    }
    if (check_) {
        if (const free_result result = free_checked(object); result != free_result::done)
            stop_at_invalid_free(object, result);
        return;
    }
    const unsigned cls = class_of(object);
    if (cls == new_class) {
        if (poison_ != poisoning::none)
            slabs_.free_poisoned(object);
        else
            slabs_.free(object);
    } else if (cls == classes_) {
        large_.free(object);
    } else if (cls == near_class()) {
        native::check(free_near(object) == free_result::done, "free of what is no object");
    } else {
        dense_[cls - 1].free(object);
    }
}

free_result space::free_near(void* object) noexcept {
    return in_once(object) ? once_.free_checked(object) : near_.free(object);
}

std::uint64_t space::births_at_once(const dense_counters& now) noexcept {
    const std::uint64_t most = std::max<std::uint64_t>(least_births, now.live_bytes / 8);
    const std::uint64_t dead = now.extent_bytes - std::min(now.extent_bytes, now.live_bytes);
    return most - std::min(most, dead);
}

void space::allow_births(dense_heap<native>& heap) noexcept {
    if (heap.births_allowed() < least_births / 2)
        heap.allow_births(births_at_once(heap.counters()));
}

void space::allow_births_of_once(bool may) noexcept {
    if (!has_once()) return;
    if (may)
        allow_births(once_);
    else
        once_.allow_births(0);
}

std::size_t space::decommit_near(pacer& ask) noexcept {
    const std::size_t bytes = near_.decommit_free_memory(ask);
    if (!has_once() || once_.runs() == 0) return bytes;
    return ask.may_continue() ? bytes + once_.decommit_free_memory(ask) : bytes;
}

free_result space::free_checked(void* object) noexcept {
    const unsigned cls = class_of(object);
    if (cls == owned_class_) {
        if (owner_->size_of(object) == 0) return free_result::no_object;
        owner_->free(object);
        return free_result::done;
    }
    if (cls == new_class) return slabs_.free_checked(object);
    if (cls == near_class()) return free_near(object);
    return cls == classes_ ? large_.free_checked(object) : dense_[cls - 1].free_checked(object);
}

std::size_t space::usable_size_elsewhere(const void* object) const noexcept {
    const unsigned cls = class_of(object);
    if (cls == near_class()) return in_once(object) ? once_.size_of(object) : near_.size_of(object);
    if (cls == owned_class_) return owner_->size_of(object);
    return cls == classes_ ? large_.size_of(object) : dense_[cls - 1].size_of(object);
}

bool space::resize_large(void* object, std::size_t size) noexcept {
    if (class_of(object) != classes_) return false;
    const std::size_t rounded = object_size(size, attributes_at(large_.set_of(object)));
    if (rounded <= max_small_size || rounded < size) return false;
    const std::size_t before = large_.size_of(object);
    char* const begin = static_cast<char*>(object);
    // What another thread may have at once. A shorter one always has room.
    if (rounded < before && poison_ != poisoning::none)
        poison(begin + rounded, before - rounded, poison_);
    if (!large_.resize(object, rounded)) return false;
    if (rounded > before && hides(poison_)) asan::show(begin + before, rounded - before);
    return true;
}

space::object_info space::info(const void* object) const noexcept {
    const unsigned cls = class_of(object);
    if (cls == new_class) {
        const std::size_t size = slabs_.size_of_racy(object);
        return size == 0 ? object_info{0, {}}
                         : object_info{size, attributes_at(slabs_.set_of(object))};
    }
    if (cls == classes_) {
        return {large_.size_of(object), attributes_at(large_.set_of(object))};
    }
    if (cls == near_class()) {
        const bool once = in_once(object);
        const std::size_t size = once ? once_.size_of_racy(object) : near_.size_of_racy(object);
        if (size == 0 || size > max_dense_size) return {0, {}};
        return {size, attributes_at(once ? once_.set_of(object) : near_.set_of(object))};
    }
    if (cls == owned_class_) return {owner_->size_of(object), {}};
    const dense_heap<native>& dense = dense_[cls - 1];
    const std::size_t size = dense.size_of_racy(object);
    return size == 0 || size > max_dense_size
               ? object_info{0, {}}
               : object_info{size, attributes_at(dense.set_of(object))};
}

void* space::allocate_dense(unsigned cls, std::size_t size, attributes attr) noexcept {
    const std::size_t rounded = object_size(size, attr);
    const unsigned set = attribute_index(attr);
    void* object = nullptr;
    if (cls != new_class)
        object = dense_[cls - 1].allocate(rounded, set);
    else if (rounded <= max_small_size)
        object = slabs_.allocate_packed(rounded, set);
    if (object == nullptr) {
        failures_.fetch_add_relaxed(1);
        return nullptr;
    }
    if (check_ && cls == new_class) slabs_.note_allocated(object);
    if (hides(poison_)) asan::show(object, rounded);
    return object;
}

void space::undo_allocate_dense(void* object) noexcept {
    if (const unsigned cls = class_of(object); cls != new_class)
        dense_[cls - 1].undo(object);
    else
        free(object);
}

evacuation_choice space::select_evacuation(unsigned cls, double max_live_fraction,
                                           std::size_t max_bytes, run_filter spared,
                                           std::size_t holes_kept) noexcept {
    if (cls == new_class || cls >= classes_) return {};
    return dense_[cls - 1].select_evacuation(max_live_fraction, max_bytes, spared, holes_kept);
}

std::size_t space::decommit_free_memory(pacer& ask) noexcept {
    std::size_t bytes = slabs_.decommit_free_memory(ask);
    if (!ask.may_continue()) return bytes;
    bytes += large_.decommit_free_memory(ask);
    if (!ask.may_continue()) return bytes;
    bytes += decommit_near(ask);
    for (unsigned cls = 1; cls < classes_ && ask.may_continue(); ++cls)
        bytes += dense_[cls - 1].decommit_free_memory(ask);
    return bytes;
}

void space::mark_touched(const void* object, std::size_t size) noexcept {
    const std::size_t offset = offset_of(object);
    touched_[offset >> shift_].mark(offset & (range_bytes_ - 1), size);
}

void space::clear_touched() noexcept {
    for (unsigned i = 0; i <= near_class(); ++i) touched_[i].clear();
}

bool space::run_touched(const void* address) const noexcept {
    const std::size_t offset = offset_of(address);
    return touched_[offset >> shift_].run_touched(offset & (range_bytes_ - 1));
}

space::class_counters space::counters(unsigned cls) const noexcept {
    class_counters out;
    if (cls == new_class) {
        const slab_counters c = slabs_.counters();
        const near_counters near = near_.counters();
        const dense_counters once = once_.counters();
        out.live_bytes = c.live_bytes + near.live_bytes + once.live_bytes;
        out.live_objects = c.live_objects + near.live_objects + once.live_objects;
        out.extent_bytes = c.extent_bytes + near.extent_bytes + once.extent_bytes;
        out.runs = c.runs;
    } else if (cls == classes_) {
        const large_counters c = large_.counters();
        out.live_bytes = c.live_bytes;
        out.live_objects = c.live_objects;
        out.extent_bytes = c.extent_bytes;
    } else {
        const dense_counters c = dense_[cls - 1].counters();
        out.live_bytes = c.live_bytes;
        out.live_objects = c.live_objects;
        out.extent_bytes = c.extent_bytes;
        out.runs = c.runs;
        out.evacuating_runs = c.evacuating_runs;
    }
    out.hole_bytes = out.extent_bytes > out.live_bytes ? out.extent_bytes - out.live_bytes : 0;
    return out;
}

std::uint64_t space::metadata_bytes() const noexcept {
    std::uint64_t bytes = space_bytes + slabs_.metadata_bytes() + large_.metadata_bytes() +
                          near_.metadata_bytes() + once_.metadata_bytes() + begun_.metadata_bytes();
    for (unsigned cls = 1; cls < classes_; ++cls) bytes += dense_[cls - 1].metadata_bytes();
    for (unsigned i = 0; i <= near_class(); ++i) bytes += touched_[i].metadata_bytes();
    return bytes;
}

void space::fork_prepare() noexcept {
    slabs_.fork_prepare();
    large_.fork_prepare();
    near_.fork_prepare();
    once_.fork_prepare();
    for (unsigned cls = 1; cls < classes_; ++cls) dense_[cls - 1].fork_prepare();
}

void space::fork_parent() noexcept {
    for (unsigned cls = 1; cls < classes_; ++cls) dense_[cls - 1].fork_parent();
    once_.fork_parent();
    near_.fork_parent();
    large_.fork_parent();
    slabs_.fork_parent();
}

bool space::fork_child() noexcept {
    bool complete = true;
    for (unsigned cls = 1; cls < classes_; ++cls)
        complete = dense_[cls - 1].fork_child() && complete;
    once_.fork_child();
    near_.fork_child();
    large_.fork_child();
    slabs_.fork_child();
    return complete;
}

bool space::validate(std::string* what) const {
    const char* broken = slabs_.validate();
    if (broken == nullptr) broken = large_.validate();
    if (broken == nullptr) broken = near_.validate();
    if (broken == nullptr) broken = once_.validate();
    for (unsigned cls = 1; broken == nullptr && cls < classes_; ++cls) {
        broken = dense_[cls - 1].validate();
    }
    if (broken != nullptr && what != nullptr) *what = broken;
    return broken == nullptr;
}

} // namespace obase::heap
