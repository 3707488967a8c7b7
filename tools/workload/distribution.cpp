// SPDX-License-Identifier: MIT
#include "tools/workload/distribution.hpp"

#include <array>
#include <stdexcept>
#include <string>
#include <utility>

namespace workload {

namespace {

constexpr std::array<std::pair<std::string_view, distribution>, 5> names = {{
    {"uniform", distribution::uniform},
    {"zipfian", distribution::zipfian},
    {"latest", distribution::latest},
    {"hotspot", distribution::hotspot},
    {"loop", distribution::loop},
}};

void require_items(std::uint64_t items) {
    if (items == 0) throw std::invalid_argument("a distribution over 0 records");
}

void require_fraction(const char* what, double value) {
    if (!(value >= 0 && value <= 1))
        throw std::invalid_argument(std::string(what) + " " + std::to_string(value) +
                                    ": between 0 and 1 is expected");
}

} // namespace

std::optional<distribution> distribution_named(std::string_view name) noexcept {
    for (const auto& [text, which] : names)
        if (text == name) return which;
    return std::nullopt;
}

std::string_view name_of(distribution which) noexcept {
    for (const auto& [text, value] : names)
        if (value == which) return text;
    return "?";
}

double zeta(std::uint64_t items, double theta) {
    // The sum up to `summed`, then Euler-Maclaurin with two correction terms: the third would be
    // below 1e-17.
    constexpr std::uint64_t summed = 1000;
    double sum = 0;
    for (std::uint64_t i = std::min(items, summed); i > 0; --i) // small terms first
        sum += std::pow(static_cast<double>(i), -theta);
    if (items <= summed) return sum;
    const double a = summed;
    const double b = static_cast<double>(items);
    const double integral = (std::pow(b, 1 - theta) - std::pow(a, 1 - theta)) / (1 - theta);
    const auto correction = [theta](double x) { // half the term, minus B2/2! and B4/4! of the slope
        const double term = std::pow(x, -theta);
        return term / 2 - theta * term / (12 * x) +
               theta * (theta + 1) * (theta + 2) * term / (720 * x * x * x);
    };
    return sum + integral + correction(b) - correction(a);
}

hotspot_ids::hotspot_ids(std::uint64_t items, double data_fraction, double operation_fraction)
    : items_(items), operation_fraction_(operation_fraction) {
    require_items(items);
    require_fraction("the hot share of the records", data_fraction);
    require_fraction("the hot share of the requests", operation_fraction);
    hot_ = std::clamp<std::uint64_t>(
        static_cast<std::uint64_t>(static_cast<double>(items) * data_fraction), 1, items);
    if (hot_ == items && items > 1 && operation_fraction < 1 && data_fraction < 1) --hot_;
    cold_begin_ = hot_ == items ? 0 : hot_;
}

zipfian_ids::zipfian_ids(std::uint64_t items, double theta)
    : zipfian_ids(items, theta, theta > 0 && theta < 1 ? zeta(items, theta) : 0) {}

zipfian_ids::zipfian_ids(std::uint64_t items, double theta, double zeta_of_items)
    : items_(items), theta_(theta), alpha_(1 / (1 - theta)), first_two_(1 + std::pow(.5, theta)),
      zeta_(zeta_of_items) {
    require_items(items);
    if (!(theta > 0 && theta < 1))
        throw std::invalid_argument("Zipf exponent " + std::to_string(theta) +
                                    ": between 0 and 1 is expected, both excluded");
    set_eta();
}

// Chosen so that the approximation begins with rank 2 exactly where rank 1 ends.
void zipfian_ids::set_eta() noexcept {
    eta_ = items_ <= 2 ? 0
                       : (1 - std::pow(2 / static_cast<double>(items_), 1 - theta_)) /
                             (1 - first_two_ / zeta_);
}

void zipfian_ids::grow(std::uint64_t items) {
    if (items <= items_) return;
    if (items - items_ < 1000) {
        while (items_ < items) zeta_ += std::pow(static_cast<double>(++items_), -theta_);
    } else {
        items_ = items;
        zeta_ = zeta(items, theta_);
    }
    set_eta();
}

double zipfian_ids::share_below(std::uint64_t rank) const noexcept {
    if (rank == 0) return 0;
    if (rank >= items_) return 1;
    if (rank == 1) return 1 / zeta_;
    // u for which the approximation is `rank`
    const double part = static_cast<double>(rank) / static_cast<double>(items_);
    return std::max(first_two_ / zeta_, (std::pow(part, 1 - theta_) - 1 + eta_) / eta_);
}

} // namespace workload
