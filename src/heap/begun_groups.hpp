// SPDX-License-Identifier: MIT
//
// begun_groups: which group an object outside of NEAR has begun, so that all that is put near it lies together.
//
// A table of fixed size, which forgets: where four objects fall into one set, a fifth takes the place of one of
// them, and what is put near that one later begins another group. So nothing has to be told when an object ends.
// Another object at its address goes on with the group that it finds, which costs locality and nothing else.
//
// Any thread, no locks. Takes 4 MiB of address space, and memory as it is used.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heap/near.hpp"
#include "heap/reserved_array.hpp"

namespace obase::heap {

class begun_groups {
  public:
    using name_word = os::native_platform::atomic<group_name>;

    // False: no address space.
    bool create() noexcept { return entries_.reserve(sets * ways); }
    void destroy() noexcept { entries_.release(); }

    // The name of the group that the object has begun, or will have. nullptr: no memory.
    name_word* of(const void* object) noexcept {
        if (!entries_.commit_to(sets * ways)) return nullptr;
        const auto address = reinterpret_cast<std::uint64_t>(object);
        const std::uint64_t mixed = address * 0x9E37'79B9'7F4A'7C15;
        entry* const set = &entries_[(mixed >> 48 & (sets - 1)) * ways];
        for (std::size_t i = 0; i < ways; ++i) {
            std::uint64_t seen = set[i].address.load_relaxed();
            if (seen == address) return &set[i].name;
            if (seen == 0 && set[i].address.cas_relaxed(seen, address)) return &set[i].name;
            if (seen == address) return &set[i].name; // another thread's compare-exchange
        }
        entry& oldest = set[mixed >> 40 & (ways - 1)];
        oldest.name.store_release(0); // pairs with near_heap::join()
        oldest.address.store_relaxed(address);
        return &oldest.name;
    }
    std::size_t metadata_bytes() const noexcept { return entries_.committed_bytes(); }

  private:
    static constexpr std::size_t sets = std::size_t{1} << 16, ways = 4;
    struct entry {
        os::native_platform::atomic<std::uint64_t> address;
        name_word name;
    };
    reserved_array<entry> entries_;
};

} // namespace obase::heap
