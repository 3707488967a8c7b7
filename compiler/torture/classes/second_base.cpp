// SPDX-License-Identifier: MIT
//
// right: objects with two bases, owned through the second one.
#include "torture.h"
struct named {
    virtual ~named() = default;
    int id = 0;
};
struct drawn {
    virtual ~drawn() = default;
    virtual int size() const = 0;
};
struct circle : named, drawn {
    explicit circle(int r) : radius(r) { id = r; }
    int size() const override { return radius * 3 + id; }
    int radius;
};
struct dot : drawn {
    int size() const override { return 1; }
    int more[4] = {};
};
class picture {
  public:
    ~picture() {
        for (auto*& d : parts_) {
            delete d;
            d = nullptr;
        }
    }
    void add(int i) {
        if (i % 2)
            parts_[i] = new circle(i);
        else
            parts_[i] = new dot;
    }
    int size() const {
        int s = 0;
        for (const drawn* d : parts_)
            if (d) s += d->size();
        return s;
    }

  private:
    drawn* parts_[30] OBASE_GUIDED = {};
};
int main() {
    picture p;
    for (int i = 0; i < 30; ++i) p.add(i);
    settle();
    std::printf("%d\n", p.size());
}
