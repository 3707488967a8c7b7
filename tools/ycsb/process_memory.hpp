// SPDX-License-Identifier: MIT
//
// How much memory this process really uses: what the machine would get back if it ended.
//
// Resident set size is not that. It counts no page of the COLD file that is cached but not mapped
// at the moment, and none that lies compressed in zram or zswap. `used` counts all three, by two
// methods that share nothing:
//
//   control group   a group of its own for this process; the kernel charges it with every anonymous
//                   page and every page of the page cache that the process brought in
//   own count       RssAnon and RssShmem of /proc/self/status, and what mincore() finds of the
//                   COLD file in the page cache
//
// The first is used where a group can be made (it needs root, or a delegated group); the second is
// then the witness. Without a group, the second is used and /proc/self/smaps is the witness. Pages
// of the program and its libraries, which are shared with other processes, count in neither.
//
// Compressed swap (zram's mem_used_total, zswap's pool) is the machine's, not the process's: its
// growth since the meter was made is added to all of them.
#pragma once

#include "tools/ycsb/control_group.hpp"
#include "tools/ycsb/keeper.hpp"

#include <cstdint>
#include <string>

namespace obase::tools {

// A control group of its own for the calling process and its children, without any limit. Removed
// by the destructor, which moves the process back, or when the process has ended (keeper.hpp: no thread
// may have been started).
class own_control_group {
  public:
    own_control_group();
    ~own_control_group();
    own_control_group(const own_control_group&) = delete;
    own_control_group& operator=(const own_control_group&) = delete;

    // No group if none could be made.
    const control_group& group() const noexcept { return group_; }

  private:
    keeper undo_;
    control_group group_;
};

struct memory_sample {
    std::uint64_t rss = 0;        // bytes; the kernel's resident set size
    std::uint64_t used = 0;       // bytes
    std::uint64_t compressed = 0; // bytes of `used` that are compressed swap
    std::uint64_t witness = 0;    // bytes; the same as `used`, counted another way
};

class memory_meter {
  public:
    // `cold_directory`: of the COLD file, "" if COLD is anonymous. `group`: the calling process's own,
    // or no group; it outlives the meter. Null: as no group.
    explicit memory_meter(std::string cold_directory, const control_group* group);

    memory_sample sample() const;
    // How `used` and `witness` come about.
    std::string method() const;
    std::string witness_method() const;

  private:
    std::uint64_t compressed_growth() const;

    std::string cold_directory_;
    const control_group* group_;
    std::uint64_t group_before_ = 0;
    std::uint64_t own_before_ = 0;
    std::uint64_t compressed_before_ = 0;
};

} // namespace obase::tools
