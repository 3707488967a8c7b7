// SPDX-License-Identifier: MIT
//
// Runs variants of the same work in turns, A B C A B C ..., so that whatever else the machine does
// hits all of them alike. Each pair (round) holds many short slices of every variant; the time of a
// variant in a pair is the lower quartile of its slices, and comparisons are made within the pair.
//
// Precondition: the work can be cut into slices of about a millisecond.
#pragma once

#include "tools/bench/interrupt.hpp"
#include "tools/bench/spread.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace obase::tools {

struct variant {
    std::string name;
    std::function<double()> slice; // runs one slice, returns its nanoseconds per operation
};

struct interleaved {
    std::vector<std::vector<double>> ns; // [variant][pair]

    // Of variant a to variant b, pair by pair.
    std::vector<double> ratios(std::size_t a, std::size_t b) const {
        std::vector<double> result;
        for (std::size_t i = 0; i < ns[a].size(); ++i) result.push_back(ns[a][i] / ns[b][i]);
        return result;
    }
    std::vector<double> differences(std::size_t a, std::size_t b) const {
        std::vector<double> result;
        for (std::size_t i = 0; i < ns[a].size(); ++i) result.push_back(ns[a][i] - ns[b][i]);
        return result;
    }
};

// Stops after the pair under way when interrupted, so a result may have fewer pairs than asked for.
inline interleaved interleave(const std::vector<variant>& variants, std::size_t pairs,
                              std::size_t slices) {
    interleaved result;
    result.ns.resize(variants.size());
    for (const variant& v : variants) v.slice(); // page faults, caches, branch history
    for (std::size_t pair = 0; pair < pairs && !interrupted(); ++pair) {
        std::vector<std::vector<double>> times(variants.size());
        for (std::size_t i = 0; i < slices; ++i)
            for (std::size_t k = 0; k < variants.size(); ++k) {
                // A different one goes first each time: none always follows the same neighbour.
                const std::size_t which = (k + i) % variants.size();
                times[which].push_back(variants[which].slice());
            }
        for (std::size_t k = 0; k < variants.size(); ++k)
            result.ns[k].push_back(lower_quartile(times[k]));
    }
    return result;
}

} // namespace obase::tools
