// SPDX-License-Identifier: MIT
//
// refused: address of a managed object
// A view of a text leaves the operation.
#include "torture.h"

#include <string_view>
class item {
  public:
    void set(const char* text) { text_ = strdup(text); }
    std::string_view text() const { return {text_, std::strlen(text_)}; }

  private:
    char* text_ OBASE_GUIDED = nullptr;
};
int main() {
    item i;
    i.set("text");
    std::string_view v = i.text();
    settle();
    std::printf("%zu\n", v.size());
}
