// SPDX-License-Identifier: MIT
#pragma once
#include "word.hpp"
class stack {
  public:
    void push(word w);
    word pop() {
        node* top = top_;
        const word w = top->held;
        top_ = top->below;
        delete top;
        return w;
    }
    bool empty() const { return top_ == nullptr; }

  private:
    struct node {
        word held;
        node* below;
    };
    node* top_ = nullptr;
};
