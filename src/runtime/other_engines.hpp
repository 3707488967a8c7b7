// SPDX-License-Identifier: MIT
//
// other_engines: what one protocol's engine must know of the other's about the calling thread.
//
//     may_wait_for_memory.add(&this_thread_may_wait);      // an engine, before its first object
//     if (may_wait_for_memory.all()) ...                   // any engine
//
// A program may use both protocols. A thread that waits for one collector must not be in a scope that the other
// waits for, nor be the other collector.
//
// Threads: any. An entry stays for ever.
#pragma once

#include "os/platform.hpp"

namespace obase::runtime_internal {

class engine_questions {
  public:
    using question = bool (*)() noexcept; // about the calling thread

    // The second time the same is added nothing happens.
    void add(question asked) noexcept {
        for (auto& place : asked_) {
            question none = nullptr;
            if (place.load_acquire() == asked || place.cas_acq_rel(none, asked)) return;
        }
    }
    bool all() const noexcept {
        for (const auto& place : asked_)
            if (const question asked = place.load_acquire(); asked != nullptr && !asked())
                return false;
        return true;
    }

  private:
    static constexpr unsigned protocols = 2;
    os::native_platform::atomic<question> asked_[protocols];
};

inline engine_questions may_wait_for_memory;

} // namespace obase::runtime_internal
