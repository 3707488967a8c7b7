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
native_platform::atomic<fault_owner> owner; // written before `server`
native_platform::atomic<const void*> skipped_at;
native_platform::atomic<const void*> skipped_to; // written before `skipped_at`
void* explainers_stack = nullptr;                // as `before`
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

struct fault {
    const siginfo_t* info;
    const mcontext_t* machine;
    bool explained;
};

void explain_fault(void* p) noexcept {
    auto& told = *static_cast<fault*>(p);
    std::uint64_t registers[NGREG];
    for (int i = 0; i < NGREG; ++i)
        registers[i] = static_cast<std::uint64_t>(told.machine->gregs[i]);
    told.explained = explainer.load_acquire()(
        told.info->si_addr, reinterpret_cast<const void*>(registers[REG_RIP]), registers, NGREG,
        reinterpret_cast<const void*>(registers[REG_RSP]));
}

// function(argument) on another stack, which it leaves by returning.
[[gnu::noinline]] void call_on(void* stack_end, void (*function)(void*) noexcept,
                               void* argument) noexcept {
    void* before_call;
    asm volatile("movq %%rsp, %[before_call]\n\t"
                 "movq %[stack_end], %%rsp\n\t"
                 "callq *%[function]\n\t"
                 "movq %[before_call], %%rsp"
                 : [before_call] "=&b"(before_call), "+D"(argument), [function] "+a"(function)
                 : [stack_end] "r"(stack_end)
                 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "cc", "memory", "xmm0", "xmm1",
                   "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                   "xmm12", "xmm13", "xmm14", "xmm15");
}

// The thread that is on the explainer's stack; 0: none.
native_platform::atomic<std::uint64_t> explaining;

bool explained(const siginfo_t* info, const mcontext_t& machine) noexcept {
    const auto self = static_cast<std::uint64_t>(gettid());
    // A fault of the explainer itself is not explained.
    if (explaining.load_acquire() == self) return false;
    for (std::uint64_t nobody = 0; !explaining.cas_acq_rel(nobody, self); nobody = 0)
        native_platform::yield();
    fault told{info, &machine, false};
    call_on(explainers_stack, &explain_fault, &told);
    explaining.store_release(0);
    return told.explained;
}

struct served_fault {
    fault_server serve;
    const void* address;
    const void* instruction;
    bool served;
};

bool served(fault_server serve, const siginfo_t* info, const ucontext_t& context) noexcept {
    const greg_t* const registers = context.uc_mcontext.gregs;
    served_fault now{serve, info->si_addr, reinterpret_cast<const void*>(registers[REG_RIP]),
                     false};
    const auto serve_it = [](void* p) noexcept {
        auto& fault = *static_cast<served_fault*>(p);
        fault.served = fault.serve(fault.address, fault.instruction);
    };
    const stack_t& other = context.uc_stack;
    const auto on_other = [&](std::uint64_t address) {
        return (other.ss_flags & SS_DISABLE) == 0 &&
               address - reinterpret_cast<std::uint64_t>(other.ss_sp) < other.ss_size;
    };
    const auto interrupted = static_cast<std::uint64_t>(registers[REG_RSP]);
    if (on_other(reinterpret_cast<std::uint64_t>(__builtin_frame_address(0))) &&
        !on_other(interrupted)) {
        constexpr std::uint64_t red_zone = 128;
        call_on(reinterpret_cast<void*>((interrupted - red_zone) & ~std::uint64_t{15}), serve_it,
                &now);
    } else {
        serve_it(&now);
    }
    return now.served;
}

void on_segment_fault(int number, siginfo_t* info, void* context) noexcept {
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
    // A signal that another process or thread has sent says nothing about an access.
    // An address that is not canonical comes as null, from the kernel itself; null is the program's own fault.
    const bool of_a_place = info->si_addr != nullptr || info->si_code == SI_KERNEL;
    if (const fault_server serve = server.load_acquire();
        info->si_code > 0 && info->si_addr != nullptr && serve != nullptr &&
        owner.load_acquire()(info->si_addr)) {
        const int error = errno;
        const bool done = served(serve, info, *static_cast<const ucontext_t*>(context));
        errno = error;
        if (done) return;
    }
    if (auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
        info->si_code > 0 && skips_faults_of(reinterpret_cast<const void*>(registers[REG_RIP]))) {
        registers[REG_RIP] = reinterpret_cast<greg_t>(skipped_to.load_relaxed());
        return;
    }
    if (info->si_code > 0 && of_a_place && explainer.load_acquire() != nullptr &&
        explained(info, machine))
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

void watch_segment_faults(fault_explainer explain, void* stack_end) noexcept {
    explainers_stack = stack_end;
    explainer.store_release(explain);
    install();
}

void serve_segment_faults(fault_owner serves, fault_server serve) noexcept {
    owner.store_release(serves);
    server.store_release(serve);
    install();
}

void skip_faults_of(const void* at, const void* to) noexcept {
    skipped_to.store_relaxed(to);
    skipped_at.store_release(at);
}
bool skips_faults_of(const void* instruction) noexcept {
    return instruction != nullptr && instruction == skipped_at.load_acquire();
}

void let_segment_faults_through() noexcept {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGSEGV);
    pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

} // namespace obase::os
