// SPDX-License-Identifier: MIT
// An operation that looks at what another thread deletes: the program brings as many kinds as it says.
#include <cstdio>
#include <obase/arming.hpp>
#include <obase/atc.hpp>
#include <obase/marked.h>
#include <obase/runtime.hpp>
#include <thread>
#ifdef ATC
using protocol = obase::atc;
#define OBASE(name) obase_marked_atc_##name
#else
using protocol = obase::arming;
#define OBASE(name) obase_marked_##name
#endif
extern const int kinds;
long* make_one(int kind); // returns 8 words of it
void drop_one(int kind);
int main() {
    int wrong = 0;
    for (int kind = 0; kind < kinds; ++kind) {
        volatile long* words = make_one(kind);
        for (int i = 0; i < 8; ++i) words[i] = -1 - i;
        const auto outer = OBASE(enter)();
        std::thread([kind] { drop_one(kind); }).join();
        (void)obase::runtime::of<protocol>().reclaim_now();
        bool kept = true;
        for (int i = 0; i < 8; ++i) kept = kept && words[i] == -1 - i; // malloc writes into what is free
        OBASE(leave)(outer);
        std::printf("%d: %s\n", kind, kept ? "waits" : "freed at once");
        wrong += kept ? 0 : 1;
    }
    return wrong;
}
