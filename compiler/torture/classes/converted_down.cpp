// SPDX-License-Identifier: MIT
//
// refused: An object has one owner
#include "torture.h"
struct base {
    virtual ~base() = default;
};
struct derived : base {
    int more = 0;
};
class store {
  public:
    void pick() { picked_ = dynamic_cast<derived*>(held_); }

  private:
    base* held_ OBASE_GUIDED = nullptr;
    derived* picked_ = nullptr;
};
int main() {
    store s;
    s.pick();
}
