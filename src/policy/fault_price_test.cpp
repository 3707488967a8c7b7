// SPDX-License-Identifier: MIT
//
// One price for all tiers: which limits follow from which ages, how they settle, and what the memory under
// them is worth beside the best that could be kept.
#include "policy/fault_price.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

using namespace obase::policy;

namespace {

// A tier whose pages have any ages, for ever the same, and of which a share is touched at each age.
reuse_ages steady(std::initializer_list<std::pair<unsigned, std::pair<unsigned, unsigned>>> ages) {
    reuse_ages made;
    for (const auto& [age, counts] : ages) {
        made.pages[age] = made.exposed[age] = counts.first;
        made.touched[age] = counts.second;
    }
    return made;
}

struct priced : testing::Test {
    // `windows` windows in which tier 1 and tier 2 show the same.
    void run(unsigned windows, const reuse_ages& one, const reuse_ages& two,
             const fault_price::allowance& allowed) {
        for (; windows != 0; --windows) {
            price.begin();
            price.learn(1, one, {.assumed = .5, .fault_seconds = first_fault});
            price.learn(2, two, {.assumed = .5, .fault_seconds = 1e-4});
            price.choose(allowed);
        }
    }
    fault_price price;
    double first_fault = 1e-4;
};

TEST_F(priced, nothing_leaves_for_nothing) {
    run(20, steady({{0, {100, 90}}, {9, {100, 10}}}), steady({{3, {100, 20}}}), {});
    EXPECT_EQ(price.limit(1), fault_price::never);
    EXPECT_EQ(price.limit(2), fault_price::never);
    EXPECT_EQ(price.limit(5), fault_price::never) << "never told of";
    EXPECT_EQ(price.resident_pages(), 300);
    EXPECT_EQ(price.stall_per_byte(), 0);
}

TEST_F(priced, what_is_cheapest_leaves_first) {
    const reuse_ages one = steady({{0, {1000, 900}}, {10, {1000, 100}}});
    const reuse_ages two = steady({{0, {1000, 500}}, {10, {1000, 20}}});
    run(40, one, two, {.stall_seconds = 50 * 1e-4});
    EXPECT_EQ(price.limit(1), fault_price::never);
    EXPECT_LT(price.lower_limit(1), 10);
    EXPECT_GE(price.limit(2), 0);
    EXPECT_LT(price.limit(2), 10);
    EXPECT_NEAR(price.faults(), 50, 1e-6)
        << "what is left of the allowance buys a share of the first";
    EXPECT_LT(price.resident_pages(), 2800);
    EXPECT_NEAR(price.stall_per_byte() * 950 * 4096, 100e-4, 5e-4)
        << "of the dearest that was bought";
    run(40, one, two, {.stall_seconds = 150 * 1e-4});
    EXPECT_LT(price.limit(1), 10);
    EXPECT_GE(price.limit(1), 0);
    EXPECT_LT(price.limit(2), 10);
}

// A page that costs ten times as much to bring back must be ten times as rarely wanted.
TEST_F(priced, a_fault_counts_for_its_time) {
    const reuse_ages one = steady({{5, {1000, 10}}}), two = steady({{5, {1000, 40}}});
    run(40, one, two, {.stall_seconds = 45e-4});
    EXPECT_LT(price.limit(1), 5);
    EXPECT_EQ(price.limit(2), fault_price::never);
    first_fault = 1e-3;
    run(40, one, two, {.stall_seconds = 45e-4});
    EXPECT_EQ(price.limit(1), fault_price::never);
    EXPECT_LT(price.limit(2), 5);
}

// Pages that come round every ten windows: out at once, or not at all.
TEST_F(priced, an_age_at_which_pages_come_back_is_no_limit) {
    reuse_ages round;
    for (unsigned age = 0; age <= 9; ++age) round.pages[age] = round.exposed[age] = 100;
    round.touched[9] = 100;
    run(40, round, reuse_ages(), {.stall_seconds = 150 * 1e-4});
    EXPECT_LE(price.limit(1), 0);
    run(40, round, reuse_ages(), {.stall_seconds = 60 * 1e-4});
    EXPECT_GT(price.limit(1), 8) << "to leave at age 8 saves little and costs as much";
}

TEST_F(priced, memory_is_bought_at_any_price) {
    const reuse_ages one = steady({{0, {1000, 900}}, {10, {1000, 100}}});
    const reuse_ages two = steady({{0, {1000, 500}}, {10, {1000, 20}}});
    // A process that has 500 pages besides, and a budget.
    double resident = 4000;
    const auto window_within = [&](double budget) {
        run(1, one, two,
            {.stall_seconds = 0,
             .excess_pages = resident + 500 - budget,
             .out_pages = 4000 - resident});
        resident = price.resident_pages();
    };
    for (int window = 0; window < 40; ++window) window_within(3600);
    EXPECT_NEAR(resident, 3100, 1);
    EXPECT_EQ(price.limit(1), fault_price::never) << "the other is cheaper";
    for (int window = 0; window < 40; ++window) window_within(0);
    EXPECT_EQ(price.limit(1), -1);
    EXPECT_EQ(price.limit(2), -1);
    for (int window = 0; window < 40; ++window) window_within(5000);
    EXPECT_EQ(resident, 4000) << "there is room again";
}

// What may be resident is what memory is for: a stall that would be allowed buys nothing, nor does one that is none.
TEST_F(priced, with_a_budget_no_more_leaves_than_is_over_it) {
    const reuse_ages one = steady({{0, {1000, 900}}, {10, {1000, 100}}});
    const reuse_ages idle = steady({{0, {1000, 900}}, {10, {1000, 0}}});
    run(40, one, idle, {.stall_seconds = 1, .excess_pages = -100});
    EXPECT_EQ(price.resident_pages(), 4000);
    run(40, one, idle, {.stall_seconds = 1, .excess_pages = 0});
    EXPECT_EQ(price.resident_pages(), 4000);
    run(40, one, idle, {.stall_seconds = 1, .excess_pages = 200});
    EXPECT_NEAR(price.resident_pages(), 3800, 1);
    run(40, one, idle, {.stall_seconds = 1, .excess_pages = -100, .out_pages = 300});
    EXPECT_NEAR(price.resident_pages(), 3800, 1) << "of those that are out 100 may come back";
    run(40, one, idle, {.stall_seconds = 1});
    EXPECT_LT(price.resident_pages(), 3000) << "there is no budget";
}

TEST_F(priced, limits_change_by_half_at_most) {
    const reuse_ages old = steady({{0, {10, 10}}, {200, {1000, 1}}});
    int before = 200;
    for (int window = 0; window < 12; ++window) {
        run(1, old, reuse_ages(), {.stall_seconds = 1});
        const int now = price.limit(1);
        EXPECT_GE(now + 1, (before + 1) / 2);
        EXPECT_LE(now, before);
        before = now;
    }
    EXPECT_EQ(before, -1);
    for (int window = 0; window < 12; ++window) {
        run(1, old, reuse_ages(), {});
        EXPECT_LE(price.limit(1), 2 * before + 2);
        before = price.limit(1);
    }
    EXPECT_EQ(before, fault_price::never);
}

// What nobody has watched yet is believed to be as its class is, and some windows show more.
TEST_F(priced, the_first_windows_go_by_the_assumption) {
    const reuse_ages fresh = [] {
        reuse_ages made;
        made.pages[1] = 10;
        return made;
    }();
    run(1, fresh, reuse_ages(), {.stall_seconds = 4e-4});
    EXPECT_GE(price.limit(1), 1) << "five of ten are expected";
    run(1, fresh, reuse_ages(), {.stall_seconds = 6e-4});
    EXPECT_LT(price.limit(1), 1);
}

// Pages that were touched for long and are not any more.
TEST_F(priced, what_was_learned_fades) {
    run(200, steady({{9, {1000, 500}}}), reuse_ages(), {.stall_seconds = 50 * 1e-4});
    EXPECT_LT(price.resident_pages(), 1000);
    EXPECT_GT(price.resident_pages(), 800) << "a tenth of them costs all that is allowed";
    run(40, steady({{9, {1000, 0}}}), reuse_ages(), {.stall_seconds = 50 * 1e-4});
    EXPECT_LT(price.resident_pages(), 100);
}

// At ages that no page reaches for a while nothing is seen that could take its place.
TEST_F(priced, what_was_learned_of_an_age_stays_until_pages_have_it_again) {
    const fault_price::allowance allowed{.stall_seconds = 15e-4};
    run(100, steady({{9, {1000, 10}}}), reuse_ages(), allowed);
    EXPECT_LT(price.limit(1), 9) << "ten faults in a window";
    run(200, steady({{0, {1000, 1000}}}), reuse_ages(), allowed);
    EXPECT_EQ(price.limit(1), fault_price::never);
    reuse_ages again;
    again.pages[9] = 1000;
    run(12, again, reuse_ages(), allowed);
    EXPECT_LT(price.limit(1), 9);
}

// All pages are touched together, every so many windows. The quiet time between is no bargain: what leaves
// early comes back with all the others.
TEST_F(priced, pages_that_come_back_together_cost_what_they_cost) {
    constexpr double pages = 100'000, fault = 1e-4;
    for (const int period : {3, 10, 45}) {
        fault_price one;
        double out = 0, stall = 0, predicted = 0;
        unsigned age = 0;
        const int windows = 40 * period;
        const double allowed = .02 * pages * fault; // of a window
        for (int window = 0; window < windows; ++window) {
            const bool counts = window >= windows / 2;
            reuse_ages seen;
            seen.exposed[age] = static_cast<std::uint32_t>(pages);
            if (window % period == period - 1) {
                seen.touched[age] = static_cast<std::uint32_t>(pages);
                if (counts) stall += out * fault;
                out = age = 0;
            } else {
                ++age;
            }
            seen.pages[age] = static_cast<std::uint32_t>(pages);
            one.begin();
            one.learn(1, seen, {.assumed = .02, .fault_seconds = fault});
            one.choose({.stall_seconds = allowed});
            if (counts) predicted += one.stall_seconds();
            double leave = 0;
            for (std::uintptr_t run = 0; run < 100; ++run)
                leave += one.leaves(1, {run << 16, 0, age}) ? pages / 100 : 0;
            out = std::max(out, leave);
        }
        EXPECT_LE(stall, 1.5 * allowed * windows / 2) << "period " << period;
        EXPECT_LE(predicted, 1.1 * allowed * windows / 2) << "period " << period;
    }
}

TEST_F(priced, a_tier_that_is_not_told_of_keeps_its_pages) {
    run(20, steady({{5, {100, 0}}}), steady({{5, {100, 0}}}), {.stall_seconds = 1});
    EXPECT_LT(price.limit(2), 5);
    const reuse_ages one = steady({{5, {100, 0}}});
    price.begin();
    price.learn(1, one, {.assumed = .5, .fault_seconds = 1e-4});
    price.choose({.stall_seconds = 1});
    EXPECT_LT(price.limit(1), 5);
    EXPECT_EQ(price.limit(2), fault_price::never);
}

// Eight classes of touch rates, each an octave; pages of objects of one class; Poisson touches.
class sorted_heap {
  public:
    sorted_heap(double theta, unsigned objects_per_page, double touches_per_object)
        : per_page_(objects_per_page) {
        std::vector<double> rates(objects);
        double sum = 0;
        for (std::size_t i = 0; i < objects; ++i)
            sum += rates[i] = std::pow(static_cast<double>(i + 1), -theta);
        for (double& rate : rates) rate *= touches_per_object * objects / sum;
        rates_ = rates; // falling
        std::shuffle(rates.begin(), rates.end(), random_);
        for (unsigned cls = 0; cls < 8; ++cls) {
            double inside = 0, middle = 0;
            unsigned filled = 0;
            for (const double rate : rates) {
                const int octave = static_cast<int>(std::floor(std::log2(rate / .03))) + 1;
                if (std::clamp(octave, 0, 7) != static_cast<int>(cls)) continue;
                inside += rate;
                if (++filled % per_page_ == 0) {
                    pages_.push_back({cls, inside, 1});
                    middle += inside;
                    inside = 0;
                }
            }
            const double count = std::max(1., static_cast<double>(filled / per_page_));
            assumed_[cls] = -std::expm1(-middle / count);
        }
    }

    // Faults in one window, under the limits of the one before.
    double window(fault_price& price, const fault_price::allowance& allowed) {
        std::vector<reuse_ages> ages(8);
        double faults = 0;
        std::uniform_real_distribution<double> share;
        for (page& one : pages_) {
            const bool touched = share(random_) < -std::expm1(-one.rate);
            faults += touched && price.leaves(one.cls + 1, at(one));
            ++ages[one.cls].exposed[one.age];
            if (touched) ++ages[one.cls].touched[one.age];
            one.age = touched ? 0 : std::min(one.age + 1, reuse_ages::oldest);
            ++ages[one.cls].pages[one.age];
        }
        price.begin();
        for (unsigned cls = 0; cls < 8; ++cls)
            price.learn(cls + 1, ages[cls], {.assumed = assumed_[cls], .fault_seconds = 1e-4});
        price.choose(allowed);
        return faults;
    }
    double resident(const fault_price& price) const {
        double pages = 0;
        for (const page& one : pages_) pages += !price.leaves(one.cls + 1, at(one));
        return pages * per_page_;
    }
    // Objects that must be kept so that this many accesses go to the others.
    double ideal(double faults) const {
        double outside = 0;
        std::size_t kept = rates_.size();
        while (kept > 0 && outside + rates_[kept - 1] <= faults) outside += rates_[--kept];
        return static_cast<double>(kept);
    }
    static constexpr std::size_t objects = 1 << 16;

  private:
    struct page {
        unsigned cls;
        double rate;
        unsigned age;
    };
    place at(const page& one) const {
        const auto address = static_cast<std::uintptr_t>(&one - pages_.data()) * 4096;
        return {address, address + 4096, one.age};
    }
    unsigned per_page_;
    std::mt19937_64 random_{7};
    std::vector<double> rates_;
    std::vector<page> pages_;
    std::array<double, 8> assumed_{};
};

struct outcome {
    double used_over_ideal, fault_share, least; // least: share of all objects
};

outcome settle(unsigned objects_per_page, double fault_share, double touches = 1) {
    sorted_heap heap(.99, objects_per_page, touches);
    fault_price price;
    const double accesses = touches * sorted_heap::objects;
    double faults = 0, resident = 0;
    constexpr int warm = 60, counted = 20;
    for (int w = 0; w < warm + counted; ++w) {
        const double now = heap.window(price, {.stall_seconds = fault_share * accesses * 1e-4});
        if (w < warm) continue;
        faults += now / counted;
        resident += (heap.resident(price) + now / 2 * objects_per_page) / counted;
    }
    const double ideal = heap.ideal(faults);
    return {resident / ideal, faults / accesses, ideal / sorted_heap::objects};
}

TEST(fault_price, keeps_little_more_than_the_hottest_objects) {
    for (const unsigned per_page : {4u, 32u})
        for (const double share : {.01, .05, .1}) {
            const outcome found = settle(per_page, share, .25);
            std::printf("%2u objects a page, %4.1f %% may fault: %4.1f %% do, used / ideal %.3f, "
                        "ideal %.2f of all\n",
                        per_page, share * 100, found.fault_share * 100, found.used_over_ideal,
                        found.least);
            EXPECT_LT(found.used_over_ideal, 1.15) << per_page << " " << share;
            EXPECT_NEAR(found.fault_share, share, share * .05) << per_page;
        }
}

// Limits that have settled stay within 10 % from the tenth window on, in what is resident and what faults.
TEST(fault_price, settles_within_ten_windows) {
    sorted_heap heap(.99, 4, .5);
    fault_price price;
    const fault_price::allowance allowed{.stall_seconds = .05 * .5 * sorted_heap::objects * 1e-4};
    std::vector<double> resident;
    for (int w = 0; w < 40; ++w) {
        heap.window(price, allowed);
        if (w >= 9) resident.push_back(heap.resident(price));
    }
    const double mean = std::accumulate(resident.begin(), resident.end(), 0.) /
                        static_cast<double>(resident.size());
    EXPECT_GT(*std::min_element(resident.begin(), resident.end()), mean * .9);
    EXPECT_LT(*std::max_element(resident.begin(), resident.end()), mean * 1.1);
}

} // namespace
