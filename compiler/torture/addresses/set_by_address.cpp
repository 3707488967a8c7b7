// SPDX-License-Identifier: MIT
//
// refused: outlives the operation
// A static set of addresses.
#include "torture.h"

#include <set>
struct node {
    node* next OBASE_GUIDED = nullptr;
    int key = 0;
};
static std::set<const node*> seen;
class list {
  public:
    bool fresh() const { return seen.insert(head_).second; }

  private:
    node* head_ OBASE_GUIDED = nullptr;
};
int main() {
    list l;
    std::printf("%d\n", l.fresh());
}
