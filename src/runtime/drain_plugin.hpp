// SPDX-License-Identifier: MIT
//
// What reclaim_test.cpp and the library that it loads and unloads have in common.
#pragma once

#include <atomic>

struct drain_plugin_job {
    std::atomic<long>* ended;
    void (*release)(void*);
};
