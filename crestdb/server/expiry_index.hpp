// SPDX-License-Identifier: MIT
//
// server::expiry_index: which keys of a part of the keyspace end when, without looking at them.
//
// Hashes of keys in lists by the time at which they end, in steps of 1024 ms. A key that ends is
// found by its time, so nothing is sampled, and records that nobody asks for stay cold until they
// have ended. About 6 bytes per key.
//
// Threads: the caller's lock. Errors: std::bad_alloc, nothing changed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace crestdb::server {

class expiry_index {
  public:
    std::size_t size() const noexcept { return size_; }

    void add(std::uint32_t hash, std::int64_t at) {
        steps_[step_of(at)].push_back(hash);
        ++size_;
    }
    // Precondition: added with that time.
    void remove(std::uint32_t hash, std::int64_t at) noexcept {
        const auto step = steps_.find(step_of(at));
        if (step == steps_.end()) return;
        std::vector<std::uint32_t>& hashes = step->second;
        const auto found = std::find(hashes.rbegin(), hashes.rend(), hash);
        if (found == hashes.rend()) return;
        *found = hashes.back();
        hashes.pop_back();
        --size_;
        if (hashes.empty()) steps_.erase(step);
    }
    // A hash whose time is over for certain; false if there is none. It stays until remove().
    bool ended(std::int64_t now, std::uint32_t& hash, std::int64_t& step_begin) const noexcept {
        if (steps_.empty() || steps_.begin()->first >= step_of(now)) return false;
        hash = steps_.begin()->second.back();
        step_begin = steps_.begin()->first << step_bits;
        return true;
    }
    // Calls visit(hash) for up to `most` keys that end first, or, from a random time on.
    template <class Visit>
    void soonest(std::size_t most, Visit&& visit) const {
        for (const auto& [step, hashes] : steps_)
            for (const std::uint32_t hash : hashes) {
                if (most-- == 0) return;
                visit(hash);
            }
    }
    template <class Visit>
    void sample(std::uint32_t random, std::size_t most, Visit&& visit) const {
        if (steps_.empty()) return;
        const std::int64_t first = steps_.begin()->first, last = steps_.rbegin()->first;
        auto step =
            steps_.lower_bound(first + static_cast<std::int64_t>(random) % (last - first + 1));
        for (; step != steps_.end(); ++step) {
            std::size_t i = random % step->second.size();
            for (std::size_t n = step->second.size(); n-- > 0;
                 i = i + 1 == step->second.size() ? 0 : i + 1) {
                if (most-- == 0) return;
                visit(step->second[i]);
            }
        }
    }

  private:
    static constexpr unsigned step_bits = 10;
    static std::int64_t step_of(std::int64_t at) noexcept { return at >> step_bits; }

    std::map<std::int64_t, std::vector<std::uint32_t>> steps_;
    std::size_t size_ = 0;
};

} // namespace crestdb::server
