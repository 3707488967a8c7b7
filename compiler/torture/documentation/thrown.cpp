// SPDX-License-Identifier: MIT
//
// right: exceptions leave operations; what was loaded is loaded anew by the next one.
#include "torture.h"

#include <stdexcept>
class stack {
    struct node {
        int key;
        node* next OBASE_GUIDED;
    };
    node* top_ OBASE_GUIDED = nullptr;

  public:
    void push(int key) { top_ = new node{key, top_}; }
    int pop() {
        if (top_ == nullptr) throw std::out_of_range("empty");
        node* gone = top_;
        if (gone->key % 10 == 9) {
            gone->key = 0;
            throw std::runtime_error("nine");
        }
        const int key = gone->key;
        top_ = gone->next;
        delete gone;
        return key;
    }
};
int main() {
    stack s;
    for (int i = 0; i < 60; ++i) s.push(i);
    int sum = 0;
    int thrown = 0;
    for (;;) {
        try {
            sum += s.pop();
        } catch (const std::out_of_range&) {
            break;
        } catch (const std::exception&) {
            ++thrown;
            settle();
        }
    }
    std::printf("%d %d\n", sum, thrown);
}
