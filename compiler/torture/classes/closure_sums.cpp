// SPDX-License-Identifier: MIT
//
// right: closures that refer to numbers, handed to std::for_each within the operation.
#include "torture.h"

#include <algorithm>
class table {
    struct cell {
        int value;
    };
    cell* cells_[32] OBASE_GUIDED = {};

  public:
    void set(int i, int v) {
        if (!cells_[i]) cells_[i] = new cell{0};
        cells_[i]->value = v;
    }
    long sum() const {
        long s = 0;
        int order[32];
        for (int i = 0; i < 32; ++i) order[i] = 31 - i;
        std::for_each(order, order + 32, [&](int i) {
            if (cells_[i]) s = s * 3 % 10007 + cells_[i]->value;
        });
        return s;
    }
};
int main() {
    table t;
    for (int i = 0; i < 32; i += 3) t.set(i, i * i);
    settle();
    std::printf("%ld\n", t.sum());
}
