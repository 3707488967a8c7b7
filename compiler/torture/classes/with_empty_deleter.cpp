// SPDX-License-Identifier: MIT
//
// right: a deleter that is an empty class and calls free.
#include "torture.h"

#include <memory>
struct freed {
    void operator()(void* p) const { std::free(p); }
};
class box {
  public:
    void set(const char* text) {
        text_.reset(static_cast<char*>(std::malloc(std::strlen(text) + 1)));
        std::strcpy(text_.get(), text);
    }
    std::size_t length() const { return std::strlen(text_.get()); }

  private:
    std::unique_ptr<char, freed> text_ OBASE_GUIDED;
};
int main() {
    box b[20];
    for (int r = 0; r < 3; ++r) {
        for (int i = 0; i < 20; ++i) b[i].set(i % 2 ? "odd one" : "even");
        settle();
    }
    std::size_t n = 0;
    for (const box& each : b) n += each.length();
    std::printf("%zu\n", n);
}
