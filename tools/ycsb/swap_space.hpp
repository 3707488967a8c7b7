// SPDX-License-Identifier: MIT
//
// Swap for a measurement: the machine's own where it has some and that will do, otherwise a zram device
// or a file that is made, used and removed. Or none, for as long as the object lives.
//
//     const swap_space swap({.kind = swap_kind::zram, .bytes = bytes});
//     if (!swap.why_not().empty()) ...  // no root, no zram in this kernel, another session has it
//
// Swap is the machine's, so a lock on a file in /run/lock lets one process at a time make some, and
// none while another relies on there being none. What was made is undone by a process of its own
// (keeper.hpp), also after SIGKILL. The undoing has ended when the destructor returns. Threads: none may
// have been started; it forks.
#pragma once

#include "tools/ycsb/keeper.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace obase::tools {

enum class swap_kind : std::uint8_t {
    any,  // the machine's own, or a zram device
    zram, // a zram device, the machine's or one made
    file, // a file made in `directory`, and no other
    none,
    as_it_is, // whatever there is, or nothing; nothing is made and nothing locked
};

struct swap_request {
    swap_kind kind = swap_kind::any;
    std::uint64_t bytes = 0; // of what is made
    std::string directory{};
};

class swap_space {
  public:
    // Throws nothing but std::bad_alloc.
    explicit swap_space(const swap_request& request);
    ~swap_space();
    swap_space(const swap_space&) = delete;
    swap_space& operator=(const swap_space&) = delete;

    // "" if there is what was asked for, otherwise why there is not, in a sentence without its end.
    const std::string& why_not() const noexcept { return why_not_; }
    // The device or file, for reports; "" if there is none.
    const std::string& device() const noexcept { return device_; }

  private:
    std::string lock(int how);
    std::string make(const swap_request& request);
    std::string make_zram(std::uint64_t bytes);
    std::string make_file(const swap_request& request);

    std::string device_;
    std::string why_not_;
    int lock_ = -1;
    std::optional<keeper> keeper_; // undoes what was made
};

// Asks the kernel to page out all private memory of the calling process that can be swapped, used or
// not (MADV_PAGEOUT). What is used is read back at its next use, so that what stays in memory
// afterwards is what was used since. Returns the bytes that it asked for; 0 if the kernel refused.
std::uint64_t page_out_everything();

} // namespace obase::tools
