// SPDX-License-Identifier: MIT
// RUN: %accept++
// Other threads get the structure's address, not that of an object in it.
#include "marks.h"
#include <thread>
class counter {
  public:
    counter() : value_(new cell{0}) {}
    counter(const counter&) = delete;
    ~counter() { delete value_; }
    void add() { __atomic_fetch_add(&value_->number, 1, __ATOMIC_RELAXED); }
  private:
    struct cell { int number; };
    cell* value_ OBASE_GUIDED;
};
int main() {
    counter c;
    std::thread other([&c] { c.add(); });
    c.add();
    other.join();
}
