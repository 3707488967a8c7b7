// SPDX-License-Identifier: MIT
#include "handles/stress.hpp"

#include "handles/native.hpp"
#include "mobility/pins.hpp"

#include <bit>
#include <cstring>

namespace obase::handles {

namespace {

using layout = word::arming;

constexpr std::size_t moved_at_once = 64; // runs that are looked at
constexpr std::size_t rested_runs = 64;   // before their addresses are used again

unsigned kind_of(std::size_t block) noexcept {
    return static_cast<unsigned>(std::countr_zero(block / os::page_size));
}

void* bytes_at(std::uint64_t address) noexcept { return reinterpret_cast<void*>(address); }

// A handler in the thread may pin what it gives to the kernel.
class held {
  public:
    explicit held(std::mutex& lock) : hold_(lock) {}

  private:
    const os::blocked_signals no_handlers_; // first
    const std::lock_guard<std::mutex> hold_;
};

} // namespace

stress_heap::run* stress_heap::run_of(std::uint64_t address) noexcept {
    const std::size_t number = (address - begin_) >> heap::run_shift;
    return number < runs_.size() ? &runs_[number] : nullptr;
}

stress_heap::run* stress_heap::fresh_run(std::size_t block) {
    std::deque<run*>& empty = empty_[kind_of(block)];
    if (empty.size() > rested_runs) {
        run* const again = empty.front();
        empty.pop_front();
        again->used = again->freed = 0;
        return again;
    }
    const std::uint64_t begin = begin_ + (runs_.size() << heap::run_shift);
    if (begin + heap::run_bytes > end_) return nullptr;
    const std::size_t blocks = heap::run_bytes / block;
    block_set all;
    for (std::size_t i = 0; i < blocks; ++i) all.set(i);
    const std::size_t number = (begin - all_.base()) >> heap::run_shift;
    if (!all_.commit_tables(number + 1)) return nullptr;
    table_type* const table = table_type::make(table_memory_, block, blocks, all, true);
    if (table == nullptr) return nullptr;
    runs_.push_back({begin, block, 0, 0, table, std::vector<std::size_t>(blocks),
                     std::vector<const void*>(blocks)});
    all_.table(number).store_release(table);
    all_.away(number).store_seq_cst(open);
    return &runs_.back();
}

std::uint64_t stress_heap::allocate(std::size_t bytes, std::size_t alignment, const void* caller) {
    const std::size_t block = std::bit_ceil(std::max<std::size_t>(bytes + 1, os::page_size));
    void* const copy = all_.space().allocate(bytes, attributes_of(alignment, false));
    if (copy == nullptr) return 0;
    const held mine(lock_);
    run*& filling = filling_[kind_of(block)];
    if (filling == nullptr || filling->used == filling->sizes.size()) filling = fresh_run(block);
    if (filling == nullptr) {
        all_.space().free(copy);
        return 0;
    }
    const std::size_t at = filling->used++;
    filling->sizes[at] = bytes;
    live_ += bytes;
    filling->callers[at] = caller;
    filling->table->word_of(at * block)->store_release(reinterpret_cast<std::uint64_t>(copy));
    return filling->begin + at * block;
}

void stress_heap::freed(std::uint64_t home, std::uint64_t was) {
    const held mine(lock_);
    run& r = *run_of(home);
    const std::size_t at = (home - r.begin) / r.block;
    if (was == home) {
        os::decommit(bytes_at(home), r.block);
        --at_home_;
    } else {
        std::memset(bytes_at(was), poison, r.sizes[at]);
        all_.space().free(bytes_at(was));
    }
    live_ -= r.sizes[at];
    if (++r.freed == r.sizes.size()) empty_[kind_of(r.block)].push_back(&r);
}

std::size_t stress_heap::live_bytes() noexcept {
    const held mine(lock_);
    return live_;
}

std::size_t stress_heap::at_home() noexcept {
    const held mine(lock_);
    return at_home_;
}

stress_heap::object stress_heap::find(std::uint64_t address) {
    const held mine(lock_);
    const run* const r = run_of(address);
    if (r == nullptr) return {};
    const std::size_t at = (address - r->begin) / r->block;
    if (at >= r->used) return {};
    return {r->begin + at * r->block, r->sizes[at], r->callers[at],
            r->table->word_of(at * r->block)->load_acquire() != 0};
}

void stress_heap::move_some(const std::vector<std::uint64_t>& pinned) {
    const held mine(lock_);
    for (std::size_t i = 0; i < std::min(moved_at_once, runs_.size()); ++i) {
        run& r = runs_[next_++ % runs_.size()];
        r.table->for_each([&](auto& word, std::size_t at) {
            const std::uint64_t was = layout::address(word.load_acquire());
            if (was == 0 || was == r.begin + at * r.block || mobility::is_pinned(pinned, was))
                return;
            const heap::attributes attr = all_.space().info(bytes_at(was)).attr;
            void* const fresh = all_.space().allocate(r.sizes[at], attr);
            if (fresh == nullptr) return;
            std::memcpy(fresh, bytes_at(was), r.sizes[at]);
            std::memset(bytes_at(was), poison, r.sizes[at]);
            word.store_release(reinterpret_cast<std::uint64_t>(fresh));
            all_.space().free(bytes_at(was));
        });
    }
}

home_result stress_heap::bring_home(std::uint64_t home, const std::vector<std::uint64_t>& pinned,
                                    std::uint64_t* objects) {
    const held mine(lock_);
    run* const r = run_of(home);
    if (r == nullptr) return home_result::done;
    const std::size_t at = (home - r->begin) / r->block;
    auto* const word = r->table->word_of(at * r->block);
    const std::uint64_t was = layout::address(word->load_acquire());
    if (was == 0 || was == home) return home_result::done;
    if (mobility::is_pinned(pinned, was)) return home_result::pinned;
    void* const scratch = os::reserve(r->block, os::page_size);
    if (scratch == nullptr) return home_result::no_memory;
    if (os::commit(scratch, r->block) != 0) {
        os::release(scratch, r->block);
        return home_result::no_memory;
    }
    std::memcpy(scratch, bytes_at(was), r->sizes[at]);
    if (os::put_pages(scratch, bytes_at(home), r->block) != 0) {
        os::release(scratch, r->block);
        return home_result::no_memory;
    }
    word->store_release(home);
    ++at_home_;
    ++*objects;
    std::memset(bytes_at(was), poison, r->sizes[at]);
    all_.space().free(bytes_at(was));
    return home_result::done;
}

} // namespace obase::handles
