// SPDX-License-Identifier: MIT
//
// System calls by number.
//
//     if (os::keeps_addresses(SYS_set_robust_list)) ...
#pragma once

#include <sys/syscall.h>

namespace obase::os {

// True for calls that are told of memory which the kernel uses after they have returned.
constexpr bool keeps_addresses(long number) noexcept {
    return number == SYS_set_robust_list || number == SYS_set_tid_address || number == SYS_rseq ||
           number == SYS_io_submit || number == SYS_io_uring_register;
}

} // namespace obase::os
