// SPDX-License-Identifier: MIT
//
// block_table: the record behind tracked_heap. An arena of addresses, and for every address the
// block it belongs to and that block's history. Knows nothing of schedules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace obase::testing {

struct block {
    char* begin = nullptr;
    std::size_t size = 0;
    const char* name = "";
    unsigned heap = 0;
    unsigned number = 0;     // of blocks, from 1
    unsigned generation = 0; // allocations at this address, from 1
    bool live = false;
    unsigned allocated_by = 0, freed_by = 0;
    std::uint64_t allocated_at = 0, freed_at = 0;
};

class block_table {
  public:
    block_table();
    ~block_table();
    block_table(const block_table&) = delete;
    block_table& operator=(const block_table&) = delete;

    // Forgets all blocks. Addresses start over, so executions see the same ones.
    void clear();

    bool contains(const void* address) const {
        const auto* p = static_cast<const char*>(address);
        return p >= arena_ && p < arena_ + used_;
    }

    // Null if the arena is full. The bytes are set to 0xa5.
    block* allocate(std::size_t size, std::size_t alignment, unsigned heap, bool reuse);

    // The block that contains the address, or null.
    block* find(const void* address);

    void unmap(char* begin, std::size_t size);
    bool unmapped(const char* begin, std::size_t size) const;

    std::size_t live_blocks(unsigned heap) const;

    // "node#3+8", or empty if the address is in no block.
    std::string describe(const void* address);

  private:
    struct range {
        char* begin;
        char* end;
    };

    char* arena_ = nullptr;
    std::size_t used_ = 0;
    std::vector<block> blocks_; // by address
    std::vector<range> unmapped_;
};

} // namespace obase::testing
