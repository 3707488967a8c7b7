// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
#include <memory>
struct box {
    // CHECK: mark_deleter.cpp:[[@LINE+1]]:{{.*}}error: 'box::text' {{.*}} is marked, but its deleter lies beside the pointer [obase:mark-type]
    std::unique_ptr<char, void (*)(void*)> text OBASE_GUIDED{nullptr, nullptr};
};
