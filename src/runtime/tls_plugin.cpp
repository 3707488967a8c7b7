// SPDX-License-Identifier: MIT
//
// A library for fork_slots_test.cpp: thread-local storage that is too large for what the C library keeps
// beside a thread's control block.
#include <cstdint>

namespace {
thread_local std::uint64_t words[8192];
} // namespace

extern "C" __attribute__((visibility("default"))) void* tls_plugin_storage() { return words; }
