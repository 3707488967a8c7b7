// SPDX-License-Identifier: MIT
//
// fiber: a stack of its own and a switch to another one, for the virtual threads of the
// deterministic scheduler.
//
// About ten instructions per switch, no system call and no signal mask (swapcontext makes two
// system calls per switch, which would be most of the time of an exploration). The C++ runtime's
// record of exceptions in flight is switched too, so that a switch is allowed inside a catch block
// and inside a destructor run by unwinding. AddressSanitizer and ThreadSanitizer are told about
// every switch.
//
// Only for testing/. It is x86-64 and single-threaded: all fibers that switch to each other belong
// to one OS thread. thread_local variables are those of that OS thread.
#pragma once

#include <cstddef>

namespace obase::testing {

class fiber {
  public:
    // The work of a fiber. It returns the fiber to switch to when it is done.
    using job = fiber* (*)(void* argument);

    enum class kind {
        host, // the stack this OS thread came with
        own,  // a stack of its own
    };

    explicit fiber(kind k);
    ~fiber();
    fiber(const fiber&) = delete;
    fiber& operator=(const fiber&) = delete;

    // The next switch to this fiber starts `work`. A fiber that was left in the middle of earlier
    // work starts anew: what that work owned is abandoned, not destroyed.
    void assign(job work, void* argument);

    // True if the last work assigned has ended (or none was ever assigned).
    bool idle() const { return idle_; }

    // Leaves `from`, which must be the running fiber, and continues `to`.
    static void switch_to(fiber& from, fiber& to);

  private:
    static void main();
    static void leave(fiber& from, fiber& to);
    void arrived();
    void reset_stack();

    void* stack_pointer_ = nullptr;
    char* stack_ = nullptr; // lowest usable byte; null for the host until a sanitizer tells
    std::size_t stack_size_ = 0;
    job work_ = nullptr;
    void* argument_ = nullptr;
    bool idle_ = true;
    bool entered_ = false; // main() runs on this stack
    const kind kind_;

    // The C++ runtime's per-thread exception record, as the Itanium ABI lays it out.
    struct exception_record {
        void* caught = nullptr;
        unsigned int uncaught = 0;
    };
    exception_record exceptions_;

    [[maybe_unused]] void* sanitizer_stack_ = nullptr; // AddressSanitizer's fake stack
    [[maybe_unused]] void* sanitizer_fiber_ = nullptr; // ThreadSanitizer's fiber
};

// While it lives, what this OS thread allocates is no leak in the eyes of AddressSanitizer's leak
// checker: it does not see all that an abandoned stack refers to.
class leaks_permitted {
  public:
    leaks_permitted();
    ~leaks_permitted();
    leaks_permitted(const leaks_permitted&) = delete;
    leaks_permitted& operator=(const leaks_permitted&) = delete;
};

} // namespace obase::testing
