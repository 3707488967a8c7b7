// SPDX-License-Identifier: MIT
#include "tools/workload/size_distribution.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>

namespace workload {
namespace {

// All of it, or nothing.
template <class Number>
std::optional<Number> number(std::string_view text) {
    Number value{};
    const char* const end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) return std::nullopt;
    return value;
}

[[noreturn]] void refuse(std::string_view text) {
    throw std::invalid_argument(
        "sizes " + std::string(text) +
        ": BYTES, LOW-HIGH, parts with weights (100*9/20480-65536*1) or pareto:THETA/K/SIGMA is "
        "expected");
}

// The text before the next separator, which is taken away with it.
std::string_view take(std::string_view& text, char separator) {
    const std::size_t at = std::min(text.find(separator), text.size());
    const std::string_view taken = text.substr(0, at);
    text.remove_prefix(std::min(at + 1, text.size()));
    return taken;
}

} // namespace

size_distribution::size_distribution(const std::vector<part>& parts) {
    double all = 0;
    for (const part& p : parts) {
        if (p.low > p.high || p.high > largest_possible)
            throw std::invalid_argument("sizes from " + std::to_string(p.low) + " to " +
                                        std::to_string(p.high) + ": upwards, at most " +
                                        std::to_string(largest_possible) + " is expected");
        if (!(p.weight >= 0 && std::isfinite(p.weight)))
            throw std::invalid_argument("sizes with the weight " + std::to_string(p.weight));
        all += p.weight;
    }
    if (!(all > 0)) throw std::invalid_argument("sizes without a weight");
    double before = 0;
    for (const part& p : parts) {
        if (p.weight == 0) continue;
        parts_.push_back(
            {before / all, static_cast<double>(p.low), static_cast<double>(p.high - p.low + 1)});
        before += p.weight;
        largest_ = std::max(largest_, static_cast<std::uint32_t>(p.high));
    }
}

size_distribution size_distribution::pareto(double theta, double k, double sigma,
                                            std::uint64_t limit) {
    if (!(theta >= 0 && sigma > 0 && std::isfinite(theta) && std::isfinite(k) &&
          std::isfinite(sigma)) ||
        limit > largest_possible)
        throw std::invalid_argument("Pareto sizes with theta " + std::to_string(theta) + ", k " +
                                    std::to_string(k) + ", sigma " + std::to_string(sigma) +
                                    ": theta from 0, sigma above 0 are expected");
    size_distribution made;
    made.theta_ = theta;
    made.k_ = k;
    made.sigma_ = sigma;
    made.largest_ = static_cast<std::uint32_t>(limit);
    return made;
}

size_distribution size_distribution::parsed(std::string_view text) {
    const std::string_view whole = text;
    constexpr std::string_view pareto_prefix = "pareto:";
    if (text.starts_with(pareto_prefix)) {
        text.remove_prefix(pareto_prefix.size());
        const auto theta = number<double>(take(text, '/'));
        const auto k = number<double>(take(text, '/'));
        const auto sigma = number<double>(text);
        if (!theta || !k || !sigma) refuse(whole);
        return pareto(*theta, *k, *sigma);
    }
    constexpr std::string_view separators = "/*-";
    for (std::size_t i = 0; i < text.size(); ++i) // nothing between two, or behind the last
        if (separators.find(text[i]) != separators.npos &&
            (i + 1 == text.size() || separators.find(text[i + 1]) != separators.npos))
            refuse(whole);
    std::vector<part> parts;
    do {
        std::string_view weight_text = take(text, '/');
        std::string_view high_text = take(weight_text, '*');
        const auto low = number<std::uint64_t>(take(high_text, '-'));
        const auto high = high_text.empty() ? low : number<std::uint64_t>(high_text);
        const auto weight = weight_text.empty() ? std::optional(1.) : number<double>(weight_text);
        if (!weight || !low || !high) refuse(whole);
        parts.push_back({*low, *high, *weight});
    } while (!text.empty());
    return size_distribution(parts);
}

std::uint32_t size_distribution::at(double quantile) const noexcept {
    if (parts_.empty()) {
        // The inversion takes what is left above the quantile; 2^-54 keeps it from being 0.
        const double u = std::max(1 - quantile, 0x1p-54);
        const double size =
            k_ == 0 ? theta_ - sigma_ * std::log(u) : theta_ + sigma_ * (std::pow(u, -k_) - 1) / k_;
        return static_cast<std::uint32_t>(
            std::clamp(std::ceil(size), 0., static_cast<double>(largest_)));
    }
    const auto above =
        std::upper_bound(parts_.begin(), parts_.end(), quantile,
                         [](double value, const bound& b) { return value < b.before; });
    const bound& in = *(above - 1);
    const double end = above == parts_.end() ? 1 : above->before;
    const double offset = (quantile - in.before) / (end - in.before) * in.width;
    return static_cast<std::uint32_t>(in.low + std::min(std::floor(offset), in.width - 1));
}

double size_distribution::mean() const noexcept {
    double sum = 0;
    if (parts_.empty()) {
        constexpr int steps = 100'000;
        for (int i = 0; i < steps; ++i) sum += at((i + .5) / steps);
        return sum / steps;
    }
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        const double end = i + 1 == parts_.size() ? 1 : parts_[i + 1].before;
        sum += (end - parts_[i].before) * (parts_[i].low + (parts_[i].width - 1) / 2);
    }
    return sum;
}

} // namespace workload
