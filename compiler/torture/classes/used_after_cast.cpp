// SPDX-License-Identifier: MIT
//
// right: dynamic_cast and static_cast within an operation.
#include "torture.h"

#include <memory>
struct base {
    virtual ~base() = default;
    int id = 0;
};
struct one : base {
    int more = 1;
};
struct two : base {
    int other[3] = {5, 6, 7};
};
class store {
  public:
    void add(int i) {
        std::unique_ptr<base> b;
        if (i % 2)
            b = std::make_unique<one>();
        else
            b = std::make_unique<two>();
        b->id = i;
        held_[i] = std::move(b);
    }
    int sum() const {
        int s = 0;
        for (const auto& h : held_) {
            if (const auto* o = dynamic_cast<const one*>(h.get())) s += o->more + o->id;
            if (const auto* t = dynamic_cast<const two*>(h.get())) s += t->other[t->id % 3];
        }
        return s;
    }

  private:
    std::unique_ptr<base> held_[40] OBASE_GUIDED;
};
int main() {
    store s;
    for (int i = 0; i < 40; ++i) s.add(i);
    settle();
    std::printf("%d\n", s.sum());
}
