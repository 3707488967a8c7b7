// SPDX-License-Identifier: MIT
//
// right: an array of objects with destructors of their own; a table is made and ended again and again.
#include "torture.h"
class names {
    struct name {
        char* text OBASE_GUIDED = nullptr;
        ~name() { delete[] text; }
    };
    name all_[16];

  public:
    void set(int i, const char* text) {
        delete[] all_[i].text;
        all_[i].text = nullptr;
        all_[i].text = new char[std::strlen(text) + 1];
        std::strcpy(all_[i].text, text);
    }
    std::size_t length() const {
        std::size_t n = 0;
        for (const name& each : all_)
            if (each.text != nullptr) n += std::strlen(each.text);
        return n;
    }
};
int main() {
    for (int r = 0; r < 5; ++r) {
        names n;
        for (int i = 0; i < 16; ++i) n.set(i, i % 2 ? "odd" : "even");
        settle();
        for (int i = 0; i < 16; i += r + 1) n.set(i, "replaced by this");
        settle();
        std::printf("%zu\n", n.length());
    }
}
