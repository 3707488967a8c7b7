// SPDX-License-Identifier: MIT
//
// right: a deque of objects with a marked unique_ptr.
#include "torture.h"

#include <deque>
#include <memory>
#include <utility>
struct job {
    struct data {
        int values[8];
    };
    explicit job(int n) : what(std::make_unique<data>()) { what->values[n % 8] = n; }
    job(job&& other) noexcept : what(std::move(other.what)) {}
    job& operator=(job&& other) noexcept {
        what = std::move(other.what);
        return *this;
    }
    int sum() const {
        int s = 0;
        for (int v : what->values) s += v;
        return s;
    }
    std::unique_ptr<data> what OBASE_GUIDED;
};
int main() {
    std::deque<job> jobs;
    int sum = 0;
    for (int i = 0; i < 200; ++i) {
        if (i % 2)
            jobs.push_back(job(i));
        else
            jobs.emplace_front(i);
        if (i % 3 == 0) {
            sum = sum * 3 % 10007 + jobs.front().sum();
            jobs.pop_front();
        }
        if (i % 50 == 0) settle();
    }
    settle();
    for (const job& j : jobs) sum = sum * 3 % 10007 + j.sum();
    std::printf("%d\n", sum);
}
