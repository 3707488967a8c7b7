// SPDX-License-Identifier: MIT
// RUN: %accept++
// A move constructor by hand: the vector uses it, and the slots are seen.
#include "marks.h"
#include <utility>
#include <vector>
struct node { int key; };
struct bucket {
    node* head OBASE_GUIDED = nullptr;
    bucket() = default;
    bucket(bucket&& from) noexcept : head(from.head) { from.head = nullptr; }
    bucket& operator=(bucket&& from) noexcept {
        node* taken = from.head;
        from.head = nullptr;
        delete head;
        head = taken;
        return *this;
    }
    ~bucket() { delete head; }
};
void grow(std::vector<bucket>& buckets) { buckets.emplace_back(); }
