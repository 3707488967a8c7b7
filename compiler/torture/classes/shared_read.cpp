// SPDX-License-Identifier: MIT
//
// right: readers without a lock, and a writer that replaces the object.
#include "torture.h"

#include <atomic>
#include <thread>
#include <vector>
class settings {
    struct data {
        long a, b;
    };
    std::atomic<data*> now_ OBASE_GUIDED = nullptr;

  public:
    void set(long n) { delete now_.exchange(new data{n, -n}); }
    bool balanced() const {
        const data* d = now_.load();
        return d == nullptr || d->a + d->b == 0;
    }
};
int main() {
    static settings s;
    std::atomic<bool> stop{false};
    std::atomic<long> bad{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i)
        readers.emplace_back([&] {
            while (!stop)
                if (!s.balanced()) ++bad;
        });
    for (int i = 0; i < 400; ++i) {
        s.set(i);
        if (i % 50 == 0) settle();
    }
    stop = true;
    for (auto& r : readers) r.join();
    settle(); // while they run, they may use the object in each window
    bad += !s.balanced();
    std::printf("%ld\n", bad.load());
}
