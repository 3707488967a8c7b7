// SPDX-License-Identifier: MIT
//
// server::expiry_index: which keys of a part of the keyspace end when, without looking at them.
//
// A sorted sequence of 64-bit entries: the time at which the key ends, in steps of 1024 ms, and 32 bits of
// the key's hash. A key that ends is found by its time, so nothing is sampled, and records that
// nobody asks for stay cold until they have ended.
//
// The sequence is cut into blocks of at most 128 entries, and a directory has the blocks in order: a
// B-tree of two levels. All keys with an expiry of one part are in it, so the directory is short.
// 8 bytes per key, and what blocks have free: some 12 in all, whether keys end together or each alone.
// Times behind the year 2109 are one step: 32 bits of steps end there.
//
// Threads: the caller's lock. Errors: add() throws std::bad_alloc; no entry was added, bytes() may have
// changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace crestdb::server {

class expiry_index {
  public:
    using step = std::uint32_t;
    static step step_of(std::int64_t at) noexcept {
        return static_cast<step>(std::clamp<std::int64_t>(at >> step_bits, 0, last_step));
    }

    std::size_t size() const noexcept { return size_; }
    // Memory of the index.
    std::size_t bytes() const noexcept {
        return bytes_ + blocks_.capacity() * sizeof(std::vector<entry>);
    }

    void add(std::uint32_t hash, std::int64_t at) {
        const entry e = entry_of(hash, at);
        if (blocks_.empty()) {
            std::vector<entry> first;
            first.reserve(2);
            bytes_ += first.capacity() * sizeof(entry);
            try {
                first.push_back(e);
                blocks_.push_back(std::move(first));
            } catch (...) {
                bytes_ = 0;
                throw;
            }
            ++size_;
            return;
        }
        std::size_t b = block_of(e);
        if (blocks_[b].size() >= most_entries) {
            split(b);
            if (e >= blocks_[b + 1].front()) ++b;
        }
        std::vector<entry>& block = blocks_[b];
        const std::size_t had = block.capacity();
        if (block.size() == had) block.reserve(std::min(most_entries, had + had / 2 + 2));
        block.insert(std::upper_bound(block.begin(), block.end(), e), e);
        bytes_ += (block.capacity() - had) * sizeof(entry);
        ++size_;
    }
    // Precondition: added with that time.
    void remove(std::uint32_t hash, std::int64_t at) noexcept {
        const entry e = entry_of(hash, at);
        if (blocks_.empty()) return;
        const std::size_t b = block_of(e);
        std::vector<entry>& block = blocks_[b];
        const auto found = std::lower_bound(block.begin(), block.end(), e);
        if (found == block.end() || *found != e) return;
        block.erase(found);
        --size_;
        if (block.empty())
            drop(b);
        else if (b + 1 < blocks_.size() && block.size() + blocks_[b + 1].size() <= few_entries)
            merge(b);
        else if (b > 0 && block.size() + blocks_[b - 1].size() <= few_entries)
            merge(b - 1);
    }
    // True: a key with that hash ends in that step.
    bool contains(std::uint32_t hash, step at_step) const noexcept {
        if (blocks_.empty()) return false;
        const entry e = entry{at_step} << 32 | hash;
        const std::vector<entry>& block = blocks_[block_of(e)];
        return std::binary_search(block.begin(), block.end(), e);
    }
    // A hash whose time is over for certain, of the step in which most time has passed; false if there
    // is none. It stays until remove(hash, time_of(at_step)).
    bool ended(std::int64_t now, std::uint32_t& hash, step& at_step) const noexcept {
        if (size_ == 0) return false;
        const entry first = blocks_.front().front();
        if (step_in(first) >= step_of(now)) return false;
        hash = hash_in(first);
        at_step = step_in(first);
        return true;
    }
    // Calls visit(hash, step) for the keys whose time is over, up to `most` of them, the earliest first.
    template <class Visit>
    void each_ended(std::int64_t now, std::size_t most, Visit&& visit) const {
        for (const auto& block : blocks_)
            for (const entry e : block) {
                if (step_in(e) >= step_of(now) || most-- == 0) return;
                visit(hash_in(e), step_in(e));
            }
    }
    // A time in that step.
    static std::int64_t time_of(step s) noexcept { return std::int64_t{s} << step_bits; }

    // Calls visit(hash, step) for up to `most` keys that end first, or, from a random time on.
    template <class Visit>
    void soonest(std::size_t most, Visit&& visit) const {
        for (const auto& block : blocks_)
            for (const entry e : block) {
                if (most-- == 0) return;
                visit(hash_in(e), step_in(e));
            }
    }
    template <class Visit>
    void sample(std::uint32_t random, std::size_t most, Visit&& visit) const {
        if (size_ == 0) return;
        const std::size_t first = random % blocks_.size();
        std::size_t at = random / blocks_.size() % blocks_[first].size();
        most = std::min(most, size_);
        for (std::size_t b = first; most > 0; b = b + 1 == blocks_.size() ? 0 : b + 1, at = 0)
            for (; at < blocks_[b].size() && most > 0; ++at, --most)
                visit(hash_in(blocks_[b][at]), step_in(blocks_[b][at]));
    }

  private:
    using entry = std::uint64_t;
    static constexpr unsigned step_bits = 10;
    static constexpr std::int64_t last_step = UINT32_MAX;
    static constexpr std::size_t most_entries = 128, few_entries = 64;

    static entry entry_of(std::uint32_t hash, std::int64_t at) noexcept {
        return entry{step_of(at)} << 32 | hash;
    }
    static std::uint32_t hash_in(entry e) noexcept { return static_cast<std::uint32_t>(e); }
    static step step_in(entry e) noexcept { return static_cast<step>(e >> 32); }

    // The last block that begins at or before `e`; the first one without such a block. Of equal entries in
    // several blocks that is the last. Precondition: there are blocks.
    std::size_t block_of(entry e) const noexcept {
        const auto behind = std::upper_bound(
            blocks_.begin(), blocks_.end(), e,
            [](entry x, const std::vector<entry>& block) { return x < block.front(); });
        return behind == blocks_.begin() ? 0
                                         : static_cast<std::size_t>(behind - blocks_.begin()) - 1;
    }
    void split(std::size_t b) {
        std::vector<entry> upper;
        // Where entries are added at the end, as for one time to live, the block stays nearly full.
        const std::size_t kept = b + 1 == blocks_.size() ? most_entries * 7 / 8 : most_entries / 2;
        upper.reserve(most_entries - kept);
        upper.assign(blocks_[b].begin() + static_cast<std::ptrdiff_t>(kept), blocks_[b].end());
        const std::size_t more = upper.capacity() * sizeof(entry);
        if (blocks_.size() == blocks_.capacity())
            blocks_.reserve(blocks_.size() + blocks_.size() / 4 + 1);
        blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(b) + 1, std::move(upper));
        blocks_[b].resize(kept);
        bytes_ += more;
        fit(b);
    }
    // Without memory for that it does nothing.
    void fit(std::size_t b) noexcept {
        try {
            std::vector<entry> smaller;
            smaller.reserve(blocks_[b].size());
            smaller = blocks_[b];
            bytes_ += smaller.capacity() * sizeof(entry);
            bytes_ -= blocks_[b].capacity() * sizeof(entry);
            blocks_[b].swap(smaller);
        } catch (const std::bad_alloc&) {
        }
    }
    // The block behind goes into this one.
    void merge(std::size_t b) noexcept {
        try {
            std::vector<entry> both;
            both.reserve(few_entries);
            both = blocks_[b];
            both.insert(both.end(), blocks_[b + 1].begin(), blocks_[b + 1].end());
            bytes_ += both.capacity() * sizeof(entry);
            bytes_ -= blocks_[b].capacity() * sizeof(entry);
            blocks_[b].swap(both);
            drop(b + 1);
        } catch (const std::bad_alloc&) {
        }
    }
    void drop(std::size_t b) noexcept {
        bytes_ -= blocks_[b].capacity() * sizeof(entry);
        blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(b));
        if (blocks_.empty()) std::vector<std::vector<entry>>().swap(blocks_);
    }

    std::vector<std::vector<entry>> blocks_; // each with an entry at least, between calls
    std::size_t size_ = 0;
    std::size_t bytes_ = 0; // of the blocks' entries
};

} // namespace crestdb::server
