// SPDX-License-Identifier: MIT
//
// refused: its deleter lies beside the pointer
// The deleter is a pointer to a function in the unique_ptr.
#include "torture.h"

#include <memory>
struct box {
    std::unique_ptr<char, void (*)(void*)> text OBASE_GUIDED{nullptr, std::free};
};
void set(box& b) { b.text.reset(static_cast<char*>(std::malloc(10))); }
int main() { std::puts(""); }
