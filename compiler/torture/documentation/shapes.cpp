// SPDX-License-Identifier: MIT
//
// right: objects with virtual methods, owned through their base.
#include "torture.h"

#include <memory>
struct shape {
    virtual ~shape() = default;
    virtual double area() const = 0;
};
struct square : shape {
    explicit square(double s) : side(s) {}
    double area() const override { return side * side; }
    double side;
};
struct box : shape {
    box(double w, double h) : width(w), height(h) {}
    double area() const override { return width * height; }
    double width, height;
};
class drawing {
  public:
    void add(std::unique_ptr<shape> s) { shapes_[count_++] = std::move(s); }
    void add_square(double s) { shapes_[count_++] = std::make_unique<square>(s); }
    double area() const {
        double sum = 0;
        for (int i = 0; i < count_; ++i) sum += shapes_[i]->area();
        return sum;
    }

  private:
    std::unique_ptr<shape> shapes_[50] OBASE_GUIDED;
    int count_ = 0;
};
int main() {
    drawing d;
    for (int i = 0; i < 20; ++i) {
        d.add_square(i);
        d.add(std::make_unique<box>(i, 2));
    }
    settle();
    std::printf("%g\n", d.area());
    d.add_square(3);
    settle();
    std::printf("%g\n", d.area());
}
