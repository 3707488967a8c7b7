// SPDX-License-Identifier: MIT
//
// thread_number: a small number for each thread that is alive, for tables with a row for each thread. A
// number is used again when its thread has ended: the next thread that gets it goes on with the row as it is, and
// sees all that the one before wrote.
#pragma once

#include <climits>

#include "os/platform.hpp"

namespace obase::heap {

inline constexpr unsigned no_thread_number = UINT_MAX;

// Tests specialize it for their platforms.
template <class P>
struct thread_number;
template <>
struct thread_number<os::native_platform> {
    static constexpr unsigned at_once = 256; // other threads do without a number

    // Below at_once, or no_thread_number: too many threads, or this one ends just now.
    static unsigned of_caller() noexcept {
        return plus_one_ != 0 ? plus_one_ - 1 : take(); // 0 - 1 where take() had none before
    }
    // The same, if it has been asked for before.
    static unsigned at_hand() noexcept { return plus_one_ - 1; }
    // Child of a fork: all other threads are gone.
    static void only_caller_is_left() noexcept;

  private:
    static unsigned take() noexcept;
    static void leave() noexcept;
    static __thread unsigned plus_one_ __attribute__((tls_model("initial-exec"))); // 0: none yet
};

} // namespace obase::heap
