// SPDX-License-Identifier: MIT
#include <stack.hpp>
void stack::push(word w) { top_ = new node{w, top_}; }
