// SPDX-License-Identifier: MIT
//
// A list of std::unique_ptr: moved from field to field by the library's functions, made by
// std::make_unique, destroyed by destructors that call each other, with constructors that throw.
#include "forcing.hpp"

#include <obase/marked.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <utility>

struct job {
    explicit job(std::uint64_t n) : number(n) {
        if (n % 97 == 13) throw std::runtime_error("an unlucky number");
    }
    std::uint64_t number;
    std::unique_ptr<job> next OBASE_GUIDED;
};

class jobs {
  public:
    OBASE_ENTRY void push(std::uint64_t number) {
        auto fresh = std::make_unique<job>(number);
        fresh->next = std::move(first_);
        first_ = std::move(fresh);
    }
    OBASE_ENTRY std::uint64_t pop() {
        if (first_ == nullptr) return 0;
        const std::uint64_t number = first_->number;
        first_ = std::move(first_->next);
        return number;
    }
    OBASE_ENTRY std::uint64_t sum() const {
        std::uint64_t total = 0;
        for (const job* at = first_.get(); at != nullptr; at = at->next.get())
            total = total * 3 + at->number;
        return total;
    }
    // Every second one goes to the other queue.
    OBASE_ENTRY void split(jobs& other) {
        std::unique_ptr<job>* link = &first_;
        while (*link != nullptr) {
            std::swap((*link)->next, other.first_);
            std::swap(*link, other.first_);
            if (*link != nullptr) link = &(*link)->next;
        }
    }

  private:
    std::unique_ptr<job> first_ OBASE_GUIDED;
};

int main() {
    begin_forcing();
    for (int round = 0; round < 20; ++round) {
        jobs some;
        jobs others;
        int unlucky = 0;
        for (std::uint64_t i = 0; i < 2000; ++i) {
            try {
                some.push(i * 7);
            } catch (const std::runtime_error&) {
                ++unlucky;
            }
            if (i % 5 == 0) (void)some.pop();
        }
        wait_for_windows();
        std::printf("%d %llu\n", unlucky, static_cast<unsigned long long>(some.sum()));
        some.split(others);
        wait_for_windows();
        std::printf("%llu %llu\n", static_cast<unsigned long long>(some.sum()),
                    static_cast<unsigned long long>(others.sum()));
    }
    end_forcing();
}
