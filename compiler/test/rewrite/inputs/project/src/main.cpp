// SPDX-License-Identifier: MIT
#include <stack.hpp>
#include <cassert>
int main() {
    stack s;
    s.push(1);
    s.push(2);
    assert(s.pop() == 2);
    assert(s.pop() == 1 && s.empty());
    assert(s.empty() && "line 10");
}
