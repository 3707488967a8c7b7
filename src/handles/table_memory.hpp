// SPDX-License-Identifier: MIT
//
// table_memory: where forwarding tables lie. They take 8 bytes and more for each object that has moved, come in all sizes,
// and go one by one, as the objects of their runs are freed: in a general allocator gaps are left between them. Here they
// lie one behind the other in chunks, and who has them may copy those of a chunk with gaps (is_sparse()) to the end
// of another one.
//
//     table_memory memory;
//     void* const table = memory.allocate(bytes, true);       // null: there is none
//     if (memory.is_sparse(table)) ...                        // allocate, copy, publish, wait, and then
//     memory.free(table, bytes, true);
//
// A gap is not filled. So this is for tables that may be copied; for others, which stay where somebody keeps their
// addresses, there is malloc (`may_be_copied` false). A chunk without tables gives its pages back, and keeps its
// addresses. Threads: one at a time. Cost: an addition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "heap/address_sanitizer.hpp"
#include "heap/size_class.hpp"
#include "os/memory.hpp"

namespace obase::handles {

class table_memory {
  public:
    static constexpr std::size_t chunk_bytes = std::size_t{256} << 10;
    static constexpr std::size_t most_bytes = chunk_bytes - os::page_size; // of a table

    table_memory() noexcept = default;
    ~table_memory() {
        while (reserved_ != nullptr) {
            chunk* const first = reserved_;
            reserved_ = first->next_reserved;
            heap::asan::show(first, reserved_bytes);
            os::release(first, reserved_bytes);
        }
    }
    table_memory(const table_memory&) = delete;
    table_memory& operator=(const table_memory&) = delete;

    void* allocate(std::size_t bytes, bool may_be_copied) noexcept {
        bytes = heap::round_up(bytes, alignment);
        if (!may_be_copied) {
            void* const table = std::malloc(bytes);
            if (table != nullptr) filled_ += bytes;
            return table;
        }
        if (bytes > most_bytes) return nullptr;
        if (filling_ == nullptr || filling_->fill + bytes > chunk_bytes) {
            if (unused_ == nullptr && !reserve_more()) return nullptr;
            chunk* const next = unused_;
            unused_ = next->next_unused;
            if (filling_ != nullptr && filling_->live == 0) give_back(*filling_);
            filling_ = next;
        }
        void* const table = reinterpret_cast<char*>(filling_) + filling_->fill;
        filling_->fill += bytes;
        filling_->live += bytes;
        filled_ += bytes;
        heap::asan::show(table, bytes);
        return table;
    }
    void free(void* table, std::size_t bytes, bool may_be_copied) noexcept {
        bytes = heap::round_up(bytes, alignment);
        if (!may_be_copied) {
            std::free(table);
            filled_ -= bytes;
            return;
        }
        heap::asan::hide(table, bytes);
        chunk& its = chunk_of(table);
        its.live -= bytes;
        if (its.live == 0 && &its != filling_) give_back(its);
    }
    // Of chunks, as far as they are filled, and of tables from malloc.
    std::size_t bytes() const noexcept { return filled_; }
    // An eighth of the table's chunk, or more, is free. Precondition: it may be copied.
    bool is_sparse(const void* table) const noexcept {
        const chunk& its = chunk_of(const_cast<void*>(table));
        return &its != filling_ && 8 * its.live <= 7 * (its.fill - sizeof(chunk));
    }

  private:
    static constexpr std::size_t alignment = 16;
    static constexpr std::size_t reserved_bytes = 4 * chunk_bytes; // at once

    // At its beginning.
    struct alignas(alignment) chunk {
        std::size_t live = 0; // bytes of tables
        std::size_t fill = sizeof(chunk);
        chunk* next_unused = nullptr;
        chunk* next_reserved = nullptr; // of the first of those that were reserved at once
    };

    static chunk& chunk_of(void* table) noexcept {
        return *reinterpret_cast<chunk*>(reinterpret_cast<std::uintptr_t>(table) &
                                         ~(chunk_bytes - 1));
    }
    bool reserve_more() noexcept {
        void* const memory = os::reserve(reserved_bytes, chunk_bytes);
        if (memory == nullptr) return false;
        if (os::commit(memory, reserved_bytes) != 0) {
            os::release(memory, reserved_bytes);
            return false;
        }
        for (std::size_t at = reserved_bytes; at != 0; at -= chunk_bytes) {
            auto* const made = ::new (static_cast<char*>(memory) + at - chunk_bytes) chunk;
            made->next_unused = unused_;
            unused_ = made;
        }
        unused_->next_reserved = reserved_;
        reserved_ = unused_;
        return true;
    }
    void give_back(chunk& empty) noexcept {
        os::advise(reinterpret_cast<char*>(&empty) + os::page_size, chunk_bytes - os::page_size,
                   os::advice::dontneed);
        filled_ -= empty.fill - sizeof(chunk);
        empty.fill = sizeof(chunk);
        empty.next_unused = unused_;
        unused_ = &empty;
    }

    chunk* filling_ = nullptr;
    chunk* unused_ = nullptr;
    chunk* reserved_ = nullptr;
    std::size_t filled_ = 0;
};

} // namespace obase::handles
