// SPDX-License-Identifier: MIT
#include "testing/block_table.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace obase::testing {

namespace {

constexpr std::size_t arena_bytes = std::size_t{256} * 1024 * 1024;
constexpr std::size_t keep_resident = std::size_t{1024} * 1024;
// Between two blocks, so that an access past the end of one is in none.
constexpr std::size_t gap = 16;

} // namespace

block_table::block_table() {
    // A wish, not a demand: with the same address in every process, a test whose schedule depends
    // on addresses is replayed exactly. (ThreadSanitizer would not allow it, and moves it.)
#if defined(__SANITIZE_THREAD__)
    void* wish = nullptr;
#else
    void* wish = reinterpret_cast<void*>(std::uintptr_t{0x5a0000000000});
#endif
    void* memory = ::mmap(wish, arena_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        throw std::bad_alloc();
    }
    arena_ = static_cast<char*>(memory);
}

block_table::~block_table() { ::munmap(arena_, arena_bytes); }

void block_table::clear() {
    if (used_ > keep_resident) {
        ::madvise(arena_, used_, MADV_DONTNEED);
    }
    used_ = 0;
    blocks_.clear();
    unmapped_.clear();
}

block* block_table::allocate(std::size_t size, std::size_t alignment, unsigned heap, bool reuse) {
    block* chosen = nullptr;
    if (reuse) {
        for (block& b : blocks_) {
            if (!b.live && b.heap == heap && b.size == size &&
                reinterpret_cast<std::uintptr_t>(b.begin) % alignment == 0 &&
                !unmapped(b.begin, b.size) &&
                (chosen == nullptr || b.freed_at > chosen->freed_at)) {
                chosen = &b;
            }
        }
    }
    if (chosen == nullptr) {
        const std::size_t begin = (used_ + gap + alignment - 1) / alignment * alignment;
        if (size > arena_bytes || begin > arena_bytes - size) {
            return nullptr;
        }
        used_ = begin + size;
        blocks_.push_back({});
        chosen = &blocks_.back();
        chosen->begin = arena_ + begin;
        chosen->size = size;
        chosen->heap = heap;
        chosen->number = static_cast<unsigned>(blocks_.size());
    }
    chosen->live = true;
    ++chosen->generation;
    std::memset(chosen->begin, 0xa5, size);
    return chosen;
}

block* block_table::find(const void* address) {
    const auto* p = static_cast<const char*>(address);
    auto after = std::upper_bound(blocks_.begin(), blocks_.end(), p,
                                  [](const char* a, const block& b) { return a < b.begin; });
    if (after == blocks_.begin()) {
        return nullptr;
    }
    block& b = *std::prev(after);
    return p < b.begin + b.size ? &b : nullptr;
}

void block_table::unmap(char* begin, std::size_t size) {
    unmapped_.push_back({begin, begin + size});
}

bool block_table::unmapped(const char* begin, std::size_t size) const {
    return std::any_of(unmapped_.begin(), unmapped_.end(),
                       [&](const range& r) { return begin < r.end && r.begin < begin + size; });
}

std::size_t block_table::live_blocks(unsigned heap) const {
    return static_cast<std::size_t>(std::count_if(
        blocks_.begin(), blocks_.end(), [&](const block& b) { return b.live && b.heap == heap; }));
}

std::string block_table::describe(const void* address) {
    const block* b = contains(address) ? find(address) : nullptr;
    if (b == nullptr) {
        return {};
    }
    std::string text = std::string(b->name) + "#" + std::to_string(b->number);
    if (b->generation > 1) {
        text += "." + std::to_string(b->generation);
    }
    const auto offset = static_cast<const char*>(address) - b->begin;
    if (offset != 0) {
        text += "+" + std::to_string(offset);
    }
    return text;
}

} // namespace obase::testing
