// SPDX-License-Identifier: MIT
#include "tools/bench/interrupt.hpp"

#include <atomic>
#include <csignal>

namespace obase::tools {
namespace {

// SIGINT or SIGTERM came, or the parent passed one on.
volatile std::sig_atomic_t seen = 0;
// The process at work for this one; 0 if none is. A handler may run in any thread.
std::atomic<pid_t> worker{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);

// A signal that Ctrl-C does not send, so that a worker which got the terminal's SIGINT itself is
// not killed by the second SIGINT that its parent would pass on.
constexpr int passed_on = SIGUSR1;

void note(int) { seen = 1; }

void note_and_pass_on(int) {
    seen = 1;
    if (const pid_t pid = worker.load(); pid > 0) ::kill(pid, passed_on);
}

void handle(int signal, void (*handler)(int), int flags) noexcept {
    struct sigaction action{};
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
}

} // namespace

void watch_for_interrupt() noexcept {
    handle(passed_on, note, SA_RESTART);
    // The second one ends the process as usual; its worker dies with it.
    for (const int signal : {SIGINT, SIGTERM})
        handle(signal, note_and_pass_on, SA_RESTART | static_cast<int>(SA_RESETHAND));
    sigset_t all;
    sigemptyset(&all);
    for (const int signal : {SIGINT, SIGTERM, passed_on}) sigaddset(&all, signal);
    pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
}

bool interrupted() noexcept { return seen != 0; }

interrupts_held::interrupts_held() noexcept {
    sigset_t held;
    sigemptyset(&held);
    for (const int signal : {SIGINT, SIGTERM, passed_on}) sigaddset(&held, signal);
    pthread_sigmask(SIG_BLOCK, &held, &before_);
}

interrupts_held::~interrupts_held() { let_go(); }

void interrupts_held::let_go() const noexcept { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

void pass_interrupts_to(pid_t process) noexcept { worker.store(process); }

void let_interrupts_end_this_process() noexcept {
    for (const int signal : {SIGINT, SIGTERM, passed_on}) handle(signal, SIG_DFL, 0);
}

} // namespace obase::tools
