// SPDX-License-Identifier: MIT
//
// A library for reclaim_test.cpp: a destroy function that is gone when the library is unloaded.
#include "runtime/drain_plugin.hpp"

extern "C" __attribute__((visibility("default"))) void drain_plugin_destroy(void* object) {
    auto* const job = static_cast<drain_plugin_job*>(object);
    ++*job->ended;
    job->release(object);
}
