// SPDX-License-Identifier: MIT
//
// refused: global variable
// A virtual method hands out an address inside of the object.
#include "torture.h"
struct shape {
    virtual ~shape() = default;
    virtual int* place() = 0;
};
struct box : shape {
    int at = 0;
    int* place() override { return &at; }
};
static int* kept;
class picture {
  public:
    void keep() { kept = shape_->place(); }

  private:
    shape* shape_ OBASE_GUIDED = nullptr;
};
int main() {
    picture p;
    p.keep();
}
