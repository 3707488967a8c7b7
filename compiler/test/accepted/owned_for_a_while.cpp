// SPDX-License-Identifier: MIT
// RUN: %accept++
// RUN: %obase-clang++ -O0 -c -o %t.o %s
// What was taken out of a field is owned by a variable until it is freed or stored again.
#include "marks.h"
#include <memory>
#include <utility>
struct node { int key = 0; std::unique_ptr<node> next OBASE_GUIDED; };
class list {
  public:
    void push(int key) {
        std::unique_ptr<node> fresh = std::make_unique<node>();
        fresh->key = key;
        fresh->next = std::move(head_);
        head_ = std::move(fresh);
    }
    int pop() {
        if (head_ == nullptr) return 0;
        std::unique_ptr<node> first(head_.release());
        head_.reset(first->next.release());
        return first->key;
    }
    void drop() { std::unique_ptr<node>{head_.release()}; }
    void turn() {
        std::unique_ptr<node> done, rest;
        rest.reset(head_.release());
        while (rest) {
            std::unique_ptr<node> after;
            after.reset(rest->next.release());
            rest->next.reset(done.release());
            done = std::move(rest);
            rest = std::move(after);
        }
        head_.reset(done.release());
    }
  private:
    std::unique_ptr<node> head_ OBASE_GUIDED;
};
void use(list& l) {
    l.drop();
    l.turn();
    (void)l.pop();
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static list l;
    for (int key = 0; key < 20; ++key) l.push(key);
    l.turn();
    const int first = l.pop(), second = l.pop();
    std::printf("%d %d\n", first, second);
    use(l);
    std::printf("%d\n", l.pop());
}
#endif
