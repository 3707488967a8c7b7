// SPDX-License-Identifier: MIT
//
// right: virtual methods that return parts of the object to others of the class.
#include "torture.h"
struct part {
    int size;
};
class shape {
  public:
    virtual ~shape() = default;
    int size() const { return first().size + second(); }

  protected:
    virtual const part& first() const = 0;
    virtual int second() const { return 0; }
};
class box : public shape {
  public:
    explicit box(int n) : part_{n} {}

  protected:
    const part& first() const override { return part_; }

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
