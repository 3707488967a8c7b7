// SPDX-License-Identifier: MIT
//
// tiered_memory_model: what a run's own accesses would cost on a machine with a last-level cache, a TLB and two
// tiers of memory. Modelled, not measured: the same accesses give the same numbers.
//
//   pages    get frames in the order of their first access, so that results do not depend on where the system
//            maps memory; the first `local_share` of the footprint is local, the rest far (first touch)
//   cache    16 ways of lines of 64 bytes, least recently used goes; no prefetching, no inner levels
//   TLB      1,536 entries of 4 KiB pages in 12 ways, least recently used goes
//   tiers    84.6 ns local, 156 ns far: M2T, section IV.A
//   moving   as TPP moves pages, in outline: every `window` operations, far pages that missed the cache twice in
//            it are promoted, and as many local pages that were used least recently are demoted
//
//     tiered_memory_model model({.cache_bytes = 1 << 20, .footprint_pages = 300'000});
//     model.access(address, bytes); ...; model.operation();
//     model.counts().tlb_misses
//
// One thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace obase::tools {

class tiered_memory_model {
  public:
    static constexpr double local_ns = 84.6, far_ns = 156, cache_hit_ns = 20, walk_ns = 30;
    static constexpr std::size_t cache_ways = 16, tlb_ways = 12, tlb_entries = 1536;

    struct settings {
        std::size_t cache_bytes = std::size_t{1} << 20; // a multiple of 1 KiB
        std::size_t footprint_pages = 0;                // 0: all is local
        double local_share = .59;
        std::uint64_t window = 20'000; // operations
    };
    struct totals {
        std::uint64_t operations = 0;
        std::uint64_t accesses = 0; // lines
        std::uint64_t cache_misses = 0;
        std::uint64_t far_misses = 0; // part of cache_misses
        std::uint64_t tlb_misses = 0;
        std::uint64_t pages = 0; // different ones since the last clear()
        std::uint64_t migrated_pages = 0;
        double ns = 0;
    };

    explicit tiered_memory_model(const settings& s)
        : settings_(s), cache_(std::max<std::size_t>(s.cache_bytes / 64 / cache_ways, 1)),
          tlb_(tlb_entries / tlb_ways),
          local_pages_(s.footprint_pages == 0
                           ? ~std::size_t{0}
                           : static_cast<std::size_t>(static_cast<double>(s.footprint_pages) *
                                                      s.local_share)) {}

    // Where memory is touched first, before anything is counted.
    void touch(const void* address, std::size_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(address);
        for (std::uintptr_t page = begin >> 12; page <= (begin + bytes - 1) >> 12; ++page)
            frame_of(page);
    }
    void access(const void* address, std::size_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(address);
        for (std::uintptr_t line = begin >> 6; line <= (begin + bytes - 1) >> 6; ++line) use(line);
    }
    void operation() {
        if (++counts_.operations % settings_.window == 0) end_window();
    }

    std::size_t footprint() const noexcept { return frames_.size(); } // pages
    const totals& counts() const noexcept { return counts_; }
    // After a warm-up.
    void clear() noexcept {
        counts_ = {};
        ++epoch_;
    }

  private:
    // The first of a set was used last.
    template <std::size_t Ways>
    class associative {
      public:
        explicit associative(std::size_t sets) : sets_(sets) {}
        // True if the tag was there. It is now.
        bool use(std::uint64_t tag) {
            auto& set = sets_[tag % sets_.size()];
            auto at = std::find(set.begin(), set.end(), tag + 1);
            const bool hit = at != set.end();
            if (!hit) at = set.end() - 1;
            std::rotate(set.begin(), at, at + 1);
            set.front() = tag + 1; // 0 is an empty way
            return hit;
        }

      private:
        std::vector<std::array<std::uint64_t, Ways>> sets_;
    };
    struct frame {
        bool local;
        std::uint8_t misses = 0; // in this window, of a far page
        std::uint64_t last_use = 0;
        std::uint64_t epoch = 0;
    };

    std::size_t frame_of(std::uintptr_t page) {
        const auto [at, fresh] = numbers_.try_emplace(page, frames_.size());
        if (fresh) frames_.push_back({frames_.size() < local_pages_, 0, 0, 0});
        return at->second;
    }
    void use(std::uintptr_t line) {
        const std::size_t number = frame_of(line >> 6);
        frame& in = frames_[number];
        ++counts_.accesses;
        in.last_use = ++clock_;
        if (in.epoch != epoch_) {
            in.epoch = epoch_;
            ++counts_.pages;
        }
        if (!tlb_.use(number)) {
            ++counts_.tlb_misses;
            counts_.ns += walk_ns;
        }
        if (cache_.use(number << 6 | (line & 63))) {
            counts_.ns += cache_hit_ns;
            return;
        }
        ++counts_.cache_misses;
        counts_.ns += in.local ? local_ns : far_ns;
        if (in.local) return;
        ++counts_.far_misses;
        if (in.misses < 2 && ++in.misses == 2) promoted_.push_back(number);
        if (in.misses == 1) missed_.push_back(number);
    }
    void end_window() {
        if (!promoted_.empty()) {
            std::vector<std::size_t> local;
            for (std::size_t i = 0; i < frames_.size(); ++i)
                if (frames_[i].local) local.push_back(i);
            const std::size_t count = std::min(promoted_.size(), local.size());
            const auto older = [this](std::size_t a, std::size_t b) {
                return frames_[a].last_use < frames_[b].last_use;
            };
            if (count < local.size())
                std::nth_element(local.begin(), local.begin() + static_cast<std::ptrdiff_t>(count),
                                 local.end(), older);
            for (std::size_t i = 0; i < count; ++i) {
                frames_[local[i]].local = false;
                frames_[promoted_[i]].local = true;
            }
            counts_.migrated_pages += 2 * count;
            promoted_.clear();
        }
        for (const std::size_t one : missed_) frames_[one].misses = 0;
        missed_.clear();
    }

    settings settings_;
    associative<cache_ways> cache_;
    associative<tlb_ways> tlb_;
    std::size_t local_pages_;
    std::unordered_map<std::uintptr_t, std::size_t> numbers_;
    std::vector<frame> frames_;
    std::vector<std::size_t> promoted_, missed_;
    std::uint64_t clock_ = 0, epoch_ = 1;
    totals counts_;
};

} // namespace obase::tools
