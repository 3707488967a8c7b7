// SPDX-License-Identifier: MIT
//
// slot_places: where in the program each slot became one, the store by which a report names the marked field. A table by
// the slot's address. What the memory of a slot has become since does not matter: who makes a slot there again writes it
// anew.
//
// Threads: any; one lock for a few instructions. Errors: without memory slots are left out.
#pragma once

#include "os/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

namespace obase::audit {

class slot_places {
  public:
    void put(const void* slot, const void* made_by) noexcept {
        const std::lock_guard hold(lock_);
        if (2 * (used_ + 1) > room_ && !grow()) return;
        insert(reinterpret_cast<std::uint64_t>(slot), made_by);
    }
    // Null: not known.
    const void* find(const void* slot) const noexcept {
        const std::lock_guard hold(lock_);
        if (room_ == 0) return nullptr;
        const auto wanted = reinterpret_cast<std::uint64_t>(slot);
        for (std::size_t i = first(wanted);; ++i) {
            const entry& e = table_[i & (room_ - 1)];
            if (e.slot == wanted) return e.made_by;
            if (e.slot == 0) return nullptr;
        }
    }
    // The slot went along with the memory it is in.
    void move(const void* from, const void* to) noexcept {
        if (const void* made_by = find(from); made_by != nullptr) put(to, made_by);
    }
    // Behind the table, where the address is in it; else 0.
    std::uintptr_t own_end(std::uintptr_t address) const noexcept {
        const auto begin = reinterpret_cast<std::uintptr_t>(table_);
        const std::size_t bytes = room_ * sizeof(entry);
        return address - begin < bytes ? begin + bytes : 0;
    }

    // Around fork, in the forking thread.
    void fork_prepare() noexcept { lock_.lock(); }
    void fork_parent() noexcept { lock_.unlock(); }
    void fork_child() noexcept { ::new (&lock_) std::mutex; }

  private:
    struct entry {
        std::uint64_t slot; // 0: free
        const void* made_by;
    };

    static std::size_t first(std::uint64_t slot) noexcept {
        return slot / 8 * 0x9e3779b97f4a7c15 >> 20;
    }
    void insert(std::uint64_t slot, const void* made_by) noexcept {
        for (std::size_t i = first(slot);; ++i) {
            entry& e = table_[i & (room_ - 1)];
            if (e.slot != 0 && e.slot != slot) continue;
            used_ += e.slot == 0;
            e = {slot, made_by};
            return;
        }
    }
    bool grow() noexcept {
        const std::size_t room = std::max<std::size_t>(4096, 2 * room_);
        void* const memory = os::reserve(room * sizeof(entry), os::page_size);
        if (memory == nullptr) return false;
        if (os::commit(memory, room * sizeof(entry)) != 0) {
            os::release(memory, room * sizeof(entry));
            return false;
        }
        entry* const old = table_;
        const std::size_t old_room = room_;
        table_ = static_cast<entry*>(memory);
        room_ = room;
        used_ = 0;
        for (std::size_t i = 0; i < old_room; ++i)
            if (old[i].slot != 0) insert(old[i].slot, old[i].made_by);
        if (old != nullptr) os::release(old, old_room * sizeof(entry));
        return true;
    }

    mutable std::mutex lock_;
    entry* table_ = nullptr; // open addressing
    std::size_t room_ = 0;   // a power of two, or 0
    std::size_t used_ = 0;
};

} // namespace obase::audit
