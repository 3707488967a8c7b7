// SPDX-License-Identifier: MIT
//
// key_set_of: the set (key_set.hpp) that an index class is. Included by one generated source per class.
#pragma once

#include "tools/index/key_set.hpp"

#include "crestdb/index.hpp"
#include "tools/workload/key_format.hpp"

#include <obase/arming.hpp>
#include <obase/atc.hpp>
#include <obase/plain.hpp>
#include <obase/runtime.hpp>

#include <cstring>

namespace obase::tools {

// The key of a number, and its value.
class set_key {
  public:
    set_key(key_kind kind, std::uint64_t number) noexcept : number_(number) {
        if (kind == key_kind::integer) {
            const std::uint64_t big_endian = __builtin_bswap64(number);
            std::memcpy(bytes_, &big_endian, sizeof big_endian);
            size_ = sizeof big_endian;
        } else {
            workload::write_key(bytes_, number);
            size_ = sizeof bytes_;
        }
    }
    std::string_view key() const noexcept { return {bytes_, size_}; }
    std::string_view value() const noexcept {
        return {reinterpret_cast<const char*>(&number_), sizeof number_};
    }

  private:
    std::uint64_t number_;
    std::size_t size_;
    char bytes_[30];
};

template <crestdb::index Index>
class key_set_of final : public key_set {
  public:
    explicit key_set_of(std::size_t expected_keys) : index_(expected_keys) {}

    void insert(key_kind keys, std::span<const std::uint32_t> numbers) override {
        for (const std::uint32_t number : numbers) (void)insert(set_key(keys, number));
    }

    std::uint64_t touch(key_kind keys, std::span<const std::uint32_t> numbers) const override {
        std::uint64_t there = 0;
        for (const std::uint32_t number : numbers) {
            const set_key key(keys, number);
            index_.get(key.key(), [&](std::string_view value) { there += value == key.value(); });
        }
        return there;
    }

    set_counts run(set_requests& requests, const std::atomic<bool>& stop) override {
        constexpr unsigned batch = 32; // operations between two looks at `stop`
        set_counts counts;
        const std::uint64_t updates = (std::uint64_t{requests.updates} << 16) / 100;
        do {
            for (unsigned i = 0; i < batch; ++i) {
                // The key is made of the high bits, what happens to it of the low ones.
                const std::uint64_t drawn = requests.random.next();
                const auto number = static_cast<std::uint64_t>(
                    (static_cast<workload::wide_uint>(drawn) * requests.range) >> 64);
                const set_key key(requests.keys, number);
                if ((drawn & 0xffff) >= updates)
                    counts.found += index_.contains(key.key());
                else if ((drawn >> 16 & 1) != 0)
                    counts.inserted += insert(key);
                else
                    counts.erased += index_.erase(key.key());
            }
            counts.operations += batch;
        } while (!stop);
        return counts;
    }

    std::size_t size() const noexcept override { return index_.size(); }
    std::size_t index_bytes() const noexcept override { return index_.index_bytes(); }
    runtime* mover() const noexcept override {
        if constexpr (Index::protocol::moves_objects)
            return &runtime::of<typename Index::protocol>();
        else
            return nullptr;
    }

  private:
    // A set's insertion leaves a key alone that is there already; put() would replace its value.
    bool insert(const set_key& key) {
        return !index_.contains(key.key()) && index_.put(key.key(), key.value());
    }

    Index index_;
};

template <template <class> class Index>
constexpr key_set_entry key_set_entry_of() {
    return {Index<plain>::name,
            [](std::string_view protocol, std::size_t expected_keys) -> std::unique_ptr<key_set> {
                if (protocol == "none")
                    return std::make_unique<key_set_of<Index<plain>>>(expected_keys);
                if (protocol == "arming")
                    return std::make_unique<key_set_of<Index<arming>>>(expected_keys);
                if (protocol == "atc")
                    return std::make_unique<key_set_of<Index<atc>>>(expected_keys);
                return nullptr;
            }};
}

} // namespace obase::tools
