// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <cstddef>
class vector {
  public:
    explicit vector(double x, double y) : value_(new pair{x, y}) {}
    vector(vector&& from) noexcept : value_(from.value_) { from.value_ = nullptr; }
    vector& operator=(vector&& from) noexcept {
        pair* mine = value_;
        value_ = from.value_;
        from.value_ = nullptr;
        delete mine;
        return *this;
    }
    ~vector() { delete value_; }
    double operator*(const vector& other) const {
        return value_->x * other.value_->x + value_->y * other.value_->y;
    }
    vector& operator+=(const vector& other) {
        value_->x += other.value_->x;
        value_->y += other.value_->y;
        return *this;
    }
    explicit operator bool() const { return value_ != nullptr; }
  private:
    struct pair { double x, y; };
    pair* value_ OBASE_GUIDED;
};
double use() {
    vector a(1, 2), b(3, 4);
    a += b;
    return a ? a * b : 0;
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static vector a(1, 2), b(3, 4);
    a += b;
    vector c(vector(5, 6));
    a = static_cast<vector&&>(c);
    std::printf("%f %f %d\n", use(), a * b, static_cast<bool>(c));
}
#endif
