// SPDX-License-Identifier: MIT
//
// right: owners go from list to list by unique_ptr, within one operation.
#include "torture.h"

#include <memory>
#include <utility>
class board {
    struct card {
        int number;
        std::unique_ptr<card> below OBASE_GUIDED;
    };
    std::unique_ptr<card> pile_[3] OBASE_GUIDED;

  public:
    void deal(int number) {
        auto c = std::make_unique<card>();
        c->number = number;
        c->below = std::move(pile_[0]);
        pile_[0] = std::move(c);
    }
    void move(int from, int to) {
        if (!pile_[from] || from == to) return;
        std::unique_ptr<card> c = std::move(pile_[from]);
        pile_[from] = std::move(c->below);
        c->below = std::move(pile_[to]);
        pile_[to] = std::move(c);
    }
    int value(int pile) const {
        int v = 0;
        for (const card* c = pile_[pile].get(); c; c = c->below.get())
            v = (v * 7 + c->number) % 10007;
        return v;
    }
};
int main() {
    board b;
    for (int i = 0; i < 52; ++i) b.deal(i);
    for (int i = 0; i < 500; ++i) {
        if (i % 50 == 0) settle();
        b.move(i * 7 % 3, i * 5 % 3 == i * 7 % 3 ? (i + 1) % 3 : i * 5 % 3);
    }
    settle();
    std::printf("%d %d %d\n", b.value(0), b.value(1), b.value(2));
}
