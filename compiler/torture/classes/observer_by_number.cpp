// SPDX-License-Identifier: MIT
//
// right: observers know what they watch by its number.
#include "torture.h"

#include <map>
#include <memory>
class world {
    struct thing {
        int number, value;
        std::unique_ptr<thing> next OBASE_GUIDED;
    };
    std::unique_ptr<thing> things_ OBASE_GUIDED;
    thing* find(int number) const {
        thing* t = things_.get();
        while (t && t->number != number) t = t->next.get();
        return t;
    }

  public:
    void add(int number) {
        auto t = std::make_unique<thing>();
        t->number = number;
        t->value = number * 2;
        t->next = std::move(things_);
        things_ = std::move(t);
    }
    int value(int number) const {
        const thing* t = find(number);
        return t ? t->value : -1;
    }
    bool add_to(int number, int more) {
        thing* t = find(number);
        if (t) t->value += more;
        return t != nullptr;
    }
};
int main() {
    world w;
    std::map<int, int> watched;
    for (int i = 0; i < 30; ++i) {
        w.add(i);
        watched[i] = (i * 7) % 32;
    }
    settle();
    int s = 0;
    for (auto [who, what] : watched) s = s * 3 % 10007 + w.value(what) + w.add_to(what, who);
    settle();
    for (auto [who, what] : watched) s = s * 3 % 10007 + w.value(what) + who;
    std::printf("%d\n", s);
}
