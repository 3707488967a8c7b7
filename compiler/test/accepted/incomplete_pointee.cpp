// SPDX-License-Identifier: MIT
// RUN: %accept++
#include "marks.h"
class secret;
struct holder { secret* held OBASE_GUIDED; };
bool empty(const holder& h) { return h.held == nullptr; }

#ifdef WITH_MAIN // run_corpus.py
#include <cstdio>
class secret {
  public:
    int number = 5;
};
static holder all;
static void fill() { all.held = new secret; }
static int number() { return all.held->number; }
int main() {
    const bool before = empty(all);
    fill();
    std::printf("%d %d %d\n", before, empty(all), number());
}
#endif
