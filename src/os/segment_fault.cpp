// SPDX-License-Identifier: MIT
#include "os/segment_fault.hpp"

#include "os/platform.hpp"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>

namespace obase::os {

namespace {

native_platform::atomic<fault_explainer> explainer;
native_platform::atomic<fault_server> server;
// Written before our handler is the process's, and not changed while it is. `first` was there at the
// beginning; a program's handler that came later and calls its predecessor means that one.
struct sigaction before{};
struct sigaction first{};
bool have_first = false;
// The fault that this thread has handed to another handler last.
__thread const void* handed_on = nullptr;

// The other handler has what it would have had: the same context, and its own mask.
void go_on(int number, siginfo_t* info, void* context) noexcept {
    const bool came_back = handed_on == context;
    const struct sigaction& next = came_back ? first : before;
    handed_on = context;
    if ((next.sa_flags & SA_SIGINFO) != 0) {
        next.sa_sigaction(number, info, context);
    } else if (next.sa_handler == SIG_DFL || next.sa_handler == SIG_IGN) {
        // The access is tried again, and ends the process. One that was sent is sent again.
        signal(SIGSEGV, SIG_DFL);
        if (info->si_code <= 0) raise(SIGSEGV);
    } else {
        next.sa_handler(number);
    }
}

void on_segment_fault(int number, siginfo_t* info, void* context) noexcept {
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
    std::uint64_t registers[NGREG];
    for (int i = 0; i < NGREG; ++i) registers[i] = static_cast<std::uint64_t>(machine.gregs[i]);
    const fault_explainer explain = explainer.load_acquire();
    // A signal that another process or thread has sent says nothing about an access.
    // An address that is not canonical comes as null, from the kernel itself; null is the program's own fault.
    const bool of_a_place = info->si_addr != nullptr || info->si_code == SI_KERNEL;
    if (const fault_server serve = server.load_acquire();
        info->si_code > 0 && info->si_addr != nullptr && serve != nullptr) {
        const int error = errno;
        const bool served = serve(info->si_addr, reinterpret_cast<const void*>(registers[REG_RIP]));
        errno = error;
        if (served) return;
    }
    if (info->si_code > 0 && of_a_place && explain != nullptr &&
        explain(info->si_addr, reinterpret_cast<const void*>(registers[REG_RIP]), registers, NGREG,
                reinterpret_cast<const void*>(registers[REG_RSP])))
        _exit(1);
    go_on(number, info, context);
}

} // namespace

namespace {
void install() noexcept {
    struct sigaction now{};
    if (sigaction(SIGSEGV, nullptr, &now) != 0) return;
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &on_segment_fault) return;
    before = now;
    if (!have_first) {
        first = now;
        have_first = true;
    }
    struct sigaction ours{};
    ours.sa_sigaction = &on_segment_fault;
    // As the program's own: where it runs, what it lets through.
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | (now.sa_flags & SA_NODEFER);
    ours.sa_mask = now.sa_mask;
    sigaction(SIGSEGV, &ours, nullptr);
}
} // namespace

void watch_segment_faults(fault_explainer explain) noexcept {
    explainer.store_release(explain);
    install();
}

void serve_segment_faults(fault_server serve) noexcept {
    server.store_release(serve);
    install();
}

} // namespace obase::os
