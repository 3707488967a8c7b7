// SPDX-License-Identifier: MIT
// RUN: %accept++
// A virtual table's address may be copied.
#include "marks.h"
struct shape {
    virtual ~shape() = default;
    virtual double area() const = 0;
};
struct square final : shape {
    double side = 1;
    double area() const override { return side * side; }
};
class drawing {
  public:
    void set(double side) {
        square* s = new square;
        s->side = side;
        delete shape_;
        shape_ = s;
    }
    double area() const { return shape_ != nullptr ? shape_->area() : 0; }
  private:
    square* shape_ OBASE_GUIDED = nullptr;
};
double use(drawing& d) {
    d.set(2);
    return d.area();
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static drawing d;
    const double none = d.area();
    std::printf("%f %f %f\n", none, use(d), use(d));
}
#endif
