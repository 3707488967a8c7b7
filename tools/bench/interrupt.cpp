// SPDX-License-Identifier: MIT
#include "tools/bench/interrupt.hpp"

#include <csignal>

namespace obase::tools {
namespace {
volatile std::sig_atomic_t seen = 0;
} // namespace

void watch_for_interrupt() noexcept {
    struct sigaction action{};
    action.sa_handler = [](int) { seen = 1; };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() noexcept { return seen != 0; }

} // namespace obase::tools
