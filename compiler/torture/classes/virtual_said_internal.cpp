// SPDX-License-Identifier: MIT
//
// right: as private_virtual.cpp, and the source says that the virtual method is a part of operations.
#include "torture.h"
struct part {
    int size;
};
class shape {
  public:
    virtual ~shape() = default;
    int size() const { return first().size + second(); }

  protected:
    OBASE_INTERNAL virtual const part& first() const = 0;
    virtual int second() const { return 0; }
};
class box : public shape {
  public:
    explicit box(int n) : part_{n} {}

  protected:
    OBASE_INTERNAL const part& first() const override { return part_; }

  private:
    part part_;
};
class picture {
  public:
    void add(int n) { shapes_[n] = new box(n); }
    int size() const {
        int s = 0;
        for (const shape* each : shapes_)
            if (each) s += each->size();
        return s;
    }

  private:
    shape* shapes_[20] OBASE_GUIDED = {};
};
int main() {
    picture p;
    for (int i = 0; i < 20; ++i) p.add(i);
    settle();
    std::printf("%d\n", p.size());
}
