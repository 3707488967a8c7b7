// SPDX-License-Identifier: MIT
//
// right: marked variables in an unnamed namespace, one of them atomic.
#include "torture.h"

#include <atomic>
namespace {
struct node {
    int key;
    node* next OBASE_GUIDED;
};
node* head OBASE_GUIDED = nullptr;
struct settings {
    int values[6];
};
std::atomic<settings*> current OBASE_GUIDED{nullptr};
} // namespace
void push(int key) { head = new node{key, head}; }
long sum() {
    long s = 0;
    for (const node* n = head; n; n = n->next) s += n->key;
    return s;
}
void change(int n) { delete current.exchange(new settings{{n, n + 1, n + 2, 0, 0, 0}}); }
int value(int i) {
    const settings* s = current.load();
    return s ? s->values[i] : -1;
}
int main() {
    for (int i = 0; i < 60; ++i) push(i);
    for (int i = 0; i < 4; ++i) {
        change(i);
        settle();
        std::printf("%ld %d\n", sum(), value(2));
    }
}
