// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>
struct node {
    std::vector<int> values;
    std::unique_ptr<int> one;
    std::shared_ptr<int> shared;
    std::array<std::pair<int, double>, 3> pairs;
    std::atomic<int> count;
    node* next OBASE_GUIDED;
};
int count(const node& n) { return n.next == nullptr ? n.count.load() : 0; }
