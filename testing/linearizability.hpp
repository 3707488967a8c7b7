// SPDX-License-Identifier: MIT
//
// linearizable(): could the operations of a recorded concurrent history have happened one after the
// other, each at some moment between its call and its return (Herlihy and Wing 1990)?
//
// The search of Wing and Gong (1993), with Lowe's memory of what was tried: the set of operations
// placed so far together with the state they lead to. And the sequential behaviour of one key of a
// key-value store. Keys are independent, so a history of a store is linearizable if that of each
// key is (locality), and each is checked by itself.
//
//     std::vector<testing::timed<testing::key_operation>> history;   // of one key
//     history.push_back({.call = clock++, .returned = clock++, .what = {...}});
//     EXPECT_TRUE(testing::linearizable(testing::key_state{}, history));
//
// Limits: at most 64 operations at a time, and the search is exponential in how many of them
// overlap. Large histories are checked by testing/witness.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace obase::testing {

template <class Operation>
struct timed {
    std::uint64_t call = 0; // of one clock that all threads share; all different
    std::uint64_t returned = 0;
    Operation what{};
};

// `State` is copyable and ordered; operation.apply(state) changes it and says whether the result
// that was recorded is the one that the operation has in this state.
template <class State, class Operation>
class linearizability_search {
  public:
    explicit linearizability_search(const std::vector<timed<Operation>>& history)
        : history_(history) {
        if (history.size() > 64) {
            std::fputs("linearizability_search: more than 64 operations\n", stderr);
            std::abort();
        }
    }
    // The states in which the history may end; none: it is not linearizable.
    const std::set<State>& final_states(const State& initial) {
        place(0, initial);
        return final_;
    }

  private:
    void place(std::uint64_t placed, const State& state) {
        if (!tried_.insert({placed, state}).second) return;
        std::uint64_t first_return = UINT64_MAX;
        bool all = true;
        for (std::size_t i = 0; i < history_.size(); ++i) {
            if ((placed >> i & 1) != 0) continue;
            all = false;
            if (history_[i].returned < first_return) first_return = history_[i].returned;
        }
        if (all) final_.insert(state);
        // Next may be whatever was called before any other that is still to be placed returned.
        for (std::size_t i = 0; i < history_.size(); ++i) {
            if ((placed >> i & 1) != 0 || history_[i].call > first_return) continue;
            State after = state;
            if (history_[i].what.apply(after)) place(placed | std::uint64_t{1} << i, after);
        }
    }

    const std::vector<timed<Operation>>& history_;
    std::set<std::pair<std::uint64_t, State>> tried_;
    std::set<State> final_;
};

template <class State, class Operation>
bool linearizable(const State& initial, const std::vector<timed<Operation>>& history) {
    return !linearizability_search<State, Operation>(history).final_states(initial).empty();
}

// One key of a store: its value, or that it is not there.
using key_state = std::optional<std::uint64_t>;

struct key_operation {
    enum kind { get, put, update, modify, erase } what = get;
    bool result = false;      // what the operation returned
    std::uint64_t seen = 0;   // get, modify: the value found, if result
    std::uint64_t stored = 0; // put, update, modify: the value stored

    bool apply(key_state& state) const {
        const bool there = state.has_value();
        switch (what) {
        case get:
            return result == there && (!there || *state == seen);
        case put:
            state = stored;
            return result == !there;
        case update:
            if (there) state = stored;
            return result == there;
        case modify:
            if (result != there || (there && *state != seen)) return false;
            if (there) state = stored;
            return true;
        case erase:
            state.reset();
            return result == there;
        }
        return false;
    }
};

// For reports.
inline std::string to_text(const std::vector<timed<key_operation>>& history) {
    static const char* const names[] = {"get", "put", "update", "modify", "erase"};
    std::string text;
    for (const auto& o : history) {
        char line[160];
        std::snprintf(
            line, sizeof line, "[%llu, %llu] %s stored %llu -> %s, saw %llu\n",
            static_cast<unsigned long long>(o.call), static_cast<unsigned long long>(o.returned),
            names[o.what.what], static_cast<unsigned long long>(o.what.stored),
            o.what.result ? "true" : "false", static_cast<unsigned long long>(o.what.seen));
        text += line;
    }
    return text;
}

} // namespace obase::testing
