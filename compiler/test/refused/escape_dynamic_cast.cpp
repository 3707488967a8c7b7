// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: %refuse++
#include "marks.h"
#include <memory>
struct base { virtual ~base() = default; int id = 0; };
struct derived : base { int more = 0; };
class store {
  public:
    // CHECK: error: {{.*}}address of a managed object
    void pick() { kept_ = dynamic_cast<derived*>(owned_.get()); }
    int kept() const { return kept_->more; }
    void set(int id) { owned_ = std::make_unique<derived>(); owned_->id = id; }
  private:
    std::unique_ptr<base> owned_ OBASE_GUIDED;
    derived* kept_ = nullptr;
};
void use(store& s) { s.set(1); s.pick(); }
