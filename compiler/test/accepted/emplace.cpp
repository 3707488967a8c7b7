// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
#include <utility>
template <class T> class box {
  public:
    template <class... A> void emplace(A&&... arguments) {
        T* made = new T{std::forward<A>(arguments)...};
        delete held_;
        held_ = made;
    }
    bool full() const { return held_ != nullptr; }
  private:
    T* held_ OBASE_GUIDED = nullptr;
};
struct point { int x, y; };
bool use(box<point>& b) {
    b.emplace(1, 2);
    return b.full();
}

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
int main() {
    static box<point> b;
    const bool before = b.full();
    std::printf("%d %d %d\n", before, use(b), use(b));
}
#endif
