// SPDX-License-Identifier: MIT
// RUN: %accept++
// A class with a data structure as a member is no operation itself: its loop may run for ever.
#include "marks.h"
class list {
  public:
    void push(int key) { head_ = new node{key, head_}; }
  private:
    struct node { int key; node* next OBASE_GUIDED; };
    node* head_ OBASE_GUIDED = nullptr;
};
class server {
  public:
    void run(int (*next_request)()) {
        for (;;) items_.push(next_request());
    }
  private:
    list items_;
};
void serve(int (*next_request)()) {
    static server s;
    s.run(next_request);
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
#include <cstdlib>
static int next() {
    static int requests = 0;
    if (requests == 20) {
        std::puts("served");
        std::exit(0);
    }
    return ++requests;
}
int main() { serve(next); }
#endif
