// SPDX-License-Identifier: MIT
//
// used_runs: which runs whose objects have moved are to come home, because they are used too often there.
//
//     used_runs control({.share = .02});
//     control.choose(runs, program_ns);     // runs: {number, uses}; leaves those that are to come home
//     fragmentation.used_too_often(number); // for each that did: it rests, longer each time
//
// A use of a moved object costs a slow translation, some nanoseconds that the program would not spend if the object
// were at home. `share` bounds what all of them take of the time in which the program can run: above it the most used runs
// come home, until what the others took is half of it. So a load near the bound does not send runs to and fro.
//
// Threads: the collector.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace obase::policy {

struct used_limits {
    double share = 0.02;       // of the program's time
    double translation_ns = 6; // what a slow translation costs beyond a fast one
};

struct used_run {
    std::uint32_t number = 0;
    std::uint64_t uses = 0; // slow translations in the time that is judged
};

class used_runs {
  public:
    explicit used_runs(used_limits limits) noexcept : limits_(limits) {}

    // What a slow translation was measured to cost.
    void set_price(double translation_ns) noexcept { limits_.translation_ns = translation_ns; }

    // At most `most`, the most used first.
    void choose(std::vector<used_run>& runs, std::uint64_t program_ns, std::size_t most) const {
        const double bound = limits_.share * static_cast<double>(program_ns);
        double price = 0;
        for (const used_run& r : runs) price += price_of(r);
        if (price <= bound) {
            runs.clear();
            return;
        }
        std::sort(runs.begin(), runs.end(), [](const used_run& a, const used_run& b) {
            return a.uses != b.uses ? a.uses > b.uses : a.number < b.number;
        });
        std::size_t count = 0;
        while (count < std::min(most, runs.size()) && price > bound / 2)
            price -= price_of(runs[count++]);
        runs.resize(count);
    }

  private:
    double price_of(const used_run& r) const noexcept {
        return static_cast<double>(r.uses) * limits_.translation_ns;
    }

    used_limits limits_;
};

} // namespace obase::policy
