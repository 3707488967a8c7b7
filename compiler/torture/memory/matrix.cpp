// SPDX-License-Identifier: MIT
//
// right: new and delete of arrays, and rows within one of them.
#include "torture.h"
class matrix {
  public:
    matrix(int rows, int columns)
        : rows_(rows), columns_(columns), values_(new double[std::size_t(rows * columns)]()) {}
    ~matrix() { delete[] values_; }
    void set(int r, int c, double v) { row(r)[c] = v; }
    double trace() const {
        double t = 0;
        for (int i = 0; i < rows_ && i < columns_; ++i) t += values_[i * columns_ + i];
        return t;
    }

  private:
    double* row(int r) { return values_ + r * columns_; }
    int rows_, columns_;
    double* values_ OBASE_GUIDED;
};
int main() {
    for (int n = 1; n < 20; ++n) {
        matrix m(n, n + 1);
        for (int i = 0; i < n; ++i) m.set(i, i, i);
        settle();
        std::printf("%g\n", m.trace());
    }
}
