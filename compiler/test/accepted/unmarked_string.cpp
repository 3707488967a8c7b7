// SPDX-License-Identifier: MIT
// RUN: %accept++
// What cannot move stays behind a pointer that is not marked.
#include "marks.h"
#include <string>
struct node {
    const std::string* name;
    int key;
    node* next OBASE_GUIDED;
};
bool named(const node& n, const std::string& name) {
    return n.next == nullptr && *n.name == name;
}
