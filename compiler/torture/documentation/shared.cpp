// SPDX-License-Identifier: MIT
//
// refused: obase:mark-type
#include "torture.h"

#include <memory>
struct node {
    int key;
    std::shared_ptr<node> next OBASE_GUIDED;
};
int main() {
    node n{3, nullptr};
    std::printf("%d\n", n.key);
}
