// SPDX-License-Identifier: MIT
//
// Arrays of slots in loops that a compiler makes vectors of: gathers, scatters, fills and moves of whole
// arrays would take the words of armed slots for addresses, or skip the runtime.
#include "forcing.hpp"

#include <obase/marked.h>

#include <cstdint>
#include <cstdio>

namespace {

constexpr int count = 256;

struct value {
    std::uint64_t number = 0;
    std::uint64_t more[3] = {};
};

class values {
  public:
    OBASE_ENTRY ~values() {
        for (value*& v : slots_) delete v;
    }
    OBASE_ENTRY void fill(std::uint64_t from) {
        for (int i = 0; i < count; ++i) {
            delete slots_[i];
            slots_[i] = new value{from + static_cast<std::uint64_t>(i), {1, 2, 3}};
        }
    }
    OBASE_ENTRY std::uint64_t sum() const {
        std::uint64_t all = 0;
        for (int i = 0; i < count; ++i) all += slots_[i]->number;
        return all;
    }
    OBASE_ENTRY std::uint64_t sum_of_chosen(const std::uint8_t* chosen) const {
        std::uint64_t all = 0;
        for (int i = 0; i < count; ++i)
            if (chosen[i] != 0) all += slots_[i]->more[1];
        return all;
    }
    OBASE_ENTRY int in_use() const {
        int all = 0;
        for (int i = 0; i < count; ++i) all += slots_[i] != nullptr;
        return all;
    }
    OBASE_ENTRY void add(const std::uint64_t* what) {
        for (int i = 0; i < count; ++i) slots_[i]->number += what[i];
    }
    OBASE_ENTRY void move_from(values& other) {
        for (int i = 0; i < count; ++i) {
            slots_[i] = other.slots_[i];
            other.slots_[i] = nullptr;
        }
    }
    OBASE_ENTRY void clear_unused() {
        for (int i = 0; i < count; ++i) slots_[i] = nullptr;
    }
    OBASE_ENTRY void turn() {
        for (int i = 0; i < count / 2; ++i) {
            value* first = slots_[i];
            slots_[i] = slots_[count - 1 - i];
            slots_[count - 1 - i] = first;
        }
    }

  private:
    value* slots_[count] OBASE_GUIDED = {};
};

} // namespace

int main() {
    static std::uint8_t chosen[count];
    static std::uint64_t what[count];
    for (int i = 0; i < count; ++i) {
        chosen[i] = i % 3 == 0;
        what[i] = static_cast<std::uint64_t>(i) * 7;
    }
    std::uint64_t all = 0;
    begin_forcing();
    {
        static values a, b;
        b.clear_unused();
        for (int round = 0; round < 200; ++round) {
            a.fill(static_cast<std::uint64_t>(round));
            a.add(what);
            all = all * 31 + a.sum() + a.sum_of_chosen(chosen);
            b.move_from(a);
            b.turn();
            all = all * 31 + b.sum() + static_cast<std::uint64_t>(b.in_use() - a.in_use());
            if (round % 50 == 0) wait_for_windows();
            all = all * 31 + b.sum();
            a.move_from(b);
        }
        wait_for_windows();
        all += a.sum();
    }
    end_forcing();
    std::printf("%llu\n", static_cast<unsigned long long>(all));
}
