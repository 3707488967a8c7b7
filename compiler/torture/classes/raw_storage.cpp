// SPDX-License-Identifier: MIT
//
// right: an optional object in storage of the class, made in place and ended by hand.
#include "torture.h"

#include <new>
struct holder {
    char* text OBASE_GUIDED = nullptr;
    ~holder() { std::free(text); }
};
class maybe {
  public:
    ~maybe() { reset(); }
    void set(const char* text) {
        reset();
        holder* h = new (storage_) holder;
        full_ = true;
        h->text = static_cast<char*>(std::malloc(std::strlen(text) + 1));
        std::strcpy(h->text, text);
    }
    void reset() {
        if (full_) get()->~holder();
        full_ = false;
    }
    std::size_t length() { return full_ ? std::strlen(get()->text) : 0; }

  private:
    holder* get() { return std::launder(reinterpret_cast<holder*>(storage_)); }
    alignas(holder) unsigned char storage_[sizeof(holder)];
    bool full_ = false;
};
int main() {
    maybe m[10];
    for (int r = 0; r < 3; ++r) {
        for (int i = 0; i < 10; ++i)
            if (i % (r + 1) == 0)
                m[i].set("some text");
            else
                m[i].reset();
        settle();
        std::size_t n = 0;
        for (auto& one : m) n += one.length();
        std::printf("%zu\n", n);
    }
}
