// SPDX-License-Identifier: MIT
//
// refused: obase:union
#include "torture.h"

#include <optional>
struct box {
    int* value OBASE_GUIDED = nullptr;
};
int main() {
    std::optional<box> b;
    b.emplace();
    std::printf("%d\n", b->value == nullptr);
}
