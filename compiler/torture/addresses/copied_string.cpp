// SPDX-License-Identifier: MIT
//
// right: a std::string is made of the text.
#include "torture.h"

#include <string>
class item {
  public:
    void set(const char* text) {
        delete[] text_;
        text_ = nullptr;
        text_ = new char[std::strlen(text) + 1];
        std::strcpy(text_, text);
    }
    std::string text() const { return text_; }

  private:
    char* text_ OBASE_GUIDED = nullptr;
};
int main() {
    item i[20];
    for (int k = 0; k < 20; ++k) i[k].set(("a text with the number " + std::to_string(k)).c_str());
    std::string all;
    for (auto& one : i) {
        settle();
        all += one.text();
    }
    std::puts(all.c_str());
}
