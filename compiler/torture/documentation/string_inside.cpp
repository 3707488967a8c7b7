// SPDX-License-Identifier: MIT
//
// refused: obase:immovable
#include "torture.h"

#include <string>
struct node {
    std::string name;
    node* next OBASE_GUIDED;
};
int main() {
    node n{"one", nullptr};
    std::puts(n.name.c_str());
}
