// SPDX-License-Identifier: MIT
//
// right: marked fields of a base, used by derived classes and as base of elements.
#include "torture.h"
template <typename T>
struct hook {
    T* next OBASE_GUIDED = nullptr;
};
struct task : hook<task> {
    explicit task(int c) : cost(c) {}
    int cost;
};
class queue {
    task* head_ OBASE_GUIDED = nullptr;

  public:
    ~queue() {
        while (take() >= 0) {
        }
    }
    void put(int cost) {
        task** at = &head_;
        while (*at && (*at)->cost <= cost) at = &(*at)->next;
        task* t = new task(cost);
        t->next = *at;
        *at = t;
    }
    int take() {
        task* t = head_;
        if (!t) return -1;
        const int cost = t->cost;
        head_ = t->next;
        delete t;
        return cost;
    }
};
int main() {
    queue q;
    long s = 0;
    for (int i = 0; i < 90; ++i) {
        q.put(i * 31 % 90);
        if (i % 4 == 0) s = s * 3 % 10007 + q.take();
        if (i % 30 == 0) settle();
    }
    settle();
    for (int c; (c = q.take()) >= 0;) s = s * 3 % 10007 + c;
    std::printf("%ld\n", s);
}
