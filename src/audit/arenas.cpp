// SPDX-License-Identifier: MIT
#include "audit/arenas.hpp"

#include <algorithm>
#include <bit>

namespace obase::audit {

bool arenas::create(char* base, std::size_t bytes) noexcept {
    bytes = std::min(bytes, most_bytes) / unit * unit;
    const auto pages = [](std::size_t n) { return heap::round_up(n, os::page_size); };
    record_bytes_ = pages(bytes / grain * sizeof(record));
    arena_bytes_ = pages(bytes / unit * sizeof(arena));
    void* const records = os::reserve(record_bytes_, os::page_size);
    void* const numbers = os::reserve(arena_bytes_, os::page_size);
    if (records == nullptr || numbers == nullptr || os::commit(records, record_bytes_) != 0 ||
        os::commit(numbers, arena_bytes_) != 0) {
        if (records != nullptr) os::release(records, record_bytes_);
        if (numbers != nullptr) os::release(numbers, arena_bytes_);
        return false;
    }
    records_ = static_cast<record*>(records);
    arenas_ = static_cast<arena*>(numbers);
    base_ = base;
    bytes_ = bytes;
    count_ = bytes / unit;
    // The range's own address, which its heap has, is no object's: a search would take the one for the other.
    arenas_[0] = {0, 0, 1, arena_state::dead};
    return true;
}

// The first stretch of so many unused ones behind the one that was taken last. Committed.
std::size_t arenas::open(std::size_t units) noexcept {
    std::size_t run = 0;
    for (std::size_t seen = 0; seen < count_ + units; ++seen) {
        const std::size_t n = (next_ + seen) % count_;
        if (n == 0) run = 0;
        run = arenas_[n].state == arena_state::unused ? run + 1 : 0;
        if (run < units) continue;
        const std::size_t first = n + 1 - units;
        if (os::commit(memory_of(first), units * unit) != 0) return none;
        for (std::size_t i = first; i < first + units; ++i)
            arenas_[i] = {0, 0, 0, arena_state::open};
        arenas_[first].length = static_cast<std::uint32_t>(units);
        next_ = (first + units) % count_;
        return first;
    }
    return none;
}

void* arenas::allocate(std::size_t bytes, std::size_t alignment, place caller) noexcept {
    if (alignment > os::page_size || bytes > most_bytes) return nullptr;
    alignment = std::max(alignment, grain);
    const std::size_t size = heap::round_up(std::max<std::size_t>(bytes, 1), grain);
    const std::lock_guard hold(lock_);
    std::size_t number = open_;
    std::size_t at = 0;
    if (size > unit / 2) {
        number = open((size + unit - 1) / unit);
        if (number == none) return nullptr;
    } else {
        if (number != none) at = heap::round_up(arenas_[number].fill, alignment);
        if (number == none || at + size > unit) {
            if (number != none) close_locked(number);
            number = open_ = open(1);
            at = 0;
        }
        if (number == none) return nullptr;
    }
    char* const object = memory_of(number) + at;
    arenas_[number].fill = static_cast<std::uint32_t>(std::min<std::size_t>(at + size, UINT32_MAX));
    ++arenas_[number].live;
    record& r = this->at(object);
    r = record{};
    static_assert(most_bytes / grain <= UINT32_MAX);
    r.grains = static_cast<std::uint32_t>(size / grain);
    r.state = life::live;
    r.log2_alignment = static_cast<std::uint8_t>(std::countr_zero(alignment));
    r.allocated = caller;
    if (size > unit / 2) close_locked(number);
    return object;
}

// Its place is not used again before the arena's turn: another thread's object may lie behind it, and it is not zero.
void arenas::undo(void* object) noexcept {
    const std::lock_guard hold(lock_);
    at(object).state = life::none;
    const std::size_t number = number_of(object);
    if (--arenas_[number].live == 0 && arenas_[number].state == arena_state::closed) died(number);
}

std::size_t arenas::size_of(const void* object) const noexcept {
    if (!contains(object) || reinterpret_cast<std::uintptr_t>(object) % grain != 0) return 0;
    const record& r = at(object);
    return r.state == life::live || r.state == life::retired ? r.size() : 0;
}

void arenas::close() noexcept {
    const std::lock_guard hold(lock_);
    if (open_ == none || arenas_[open_].fill == 0) return;
    close_locked(open_);
    open_ = none;
}

void arenas::close_locked(std::size_t number) noexcept {
    for (std::size_t i = 0; i < arenas_[number].length; ++i)
        arenas_[number + i].state = arena_state::closed;
    if (arenas_[number].live == 0) died(number);
}

void arenas::keep_dead() noexcept {
    const std::lock_guard hold(lock_);
    keeping_ = true;
}

void arenas::bury_dead() noexcept {
    const std::lock_guard hold(lock_);
    keeping_ = false;
    while (kept_ != 0) {
        const std::size_t number = kept_ - 1;
        kept_ = arenas_[number].fill;
        bury(number);
    }
}

void arenas::died(std::size_t number) noexcept {
    if (!keeping_) return bury(number);
    arenas_[number].fill = kept_;
    kept_ = static_cast<std::uint32_t>(number + 1);
}

// Where the system has no mapping left the pages stay accessible: what is used there is not seen.
void arenas::bury(std::size_t number) noexcept {
    const std::size_t length = arenas_[number].length;
    if (os::decommit(memory_of(number), length * unit) != 0) ++unprotected_;
    for (std::size_t i = 0; i < length; ++i) arenas_[number + i].state = arena_state::dead;
    std::uint32_t& grave = graves_[dead_++ % quarantine];
    if (grave != 0) drop(grave - 1);
    grave = static_cast<std::uint32_t>(number + 1);
}

// The memory stays inaccessible until it is its turn again.
void arenas::drop(std::size_t number) noexcept {
    const std::size_t length = arenas_[number].length;
    char* const begin = reinterpret_cast<char*>(&at(memory_of(number)));
    static_assert(unit / grain * sizeof(record) % os::page_size == 0);
    os::advise(begin, length * (unit / grain) * sizeof(record), os::advice::dontneed);
    for (std::size_t i = 0; i < length; ++i) arenas_[number + i] = {};
}

void arenas::end(void* object, life how, std::uint64_t elsewhere) noexcept {
    const std::lock_guard hold(lock_);
    record& r = at(object);
    if (r.state != life::live && r.state != life::retired) return;
    r.state = how;
    r.elsewhere = elsewhere;
    const std::size_t number = number_of(object);
    if (--arenas_[number].live == 0 && arenas_[number].state == arena_state::closed) died(number);
}

record* arenas::find(const void* address, const char** begin) const noexcept {
    if (!contains(address)) return nullptr;
    const auto offset = static_cast<std::size_t>(static_cast<const char*>(address) - base_);
    const std::size_t number = number_of(address);
    const std::size_t first = number * (unit / grain);
    // One that takes several units is alone in them.
    std::size_t i = arenas_[number].length > 1 ? first : offset / grain;
    while (i > first && records_[i].state == life::none) --i;
    if (records_[i].state == life::none) return nullptr;
    *begin = base_ + i * grain;
    return offset - i * grain < records_[i].size() ? &records_[i] : nullptr;
}

} // namespace obase::audit
