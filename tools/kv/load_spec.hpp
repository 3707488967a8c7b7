// SPDX-License-Identifier: MIT
//
// load_spec: a load and its parameters as one text, NAME[:PARAMETER=VALUE,...].
//
//     load_spec spec("hot:data=.2,accesses=.99,shift-every=30s", rate);
//     spec.name();                                  // "hot"
//     spec.number("accesses", .8, 0, 1);            // .99
//     spec.operations("shift-every", 0);            // 30 * rate
//     spec.all_taken();                             // throws if a parameter was not asked for
//
// All functions throw std::invalid_argument, naming the load, the parameter, what was expected and
// what came.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace obase::tools {

class load_spec {
  public:
    // `rate`: operations per second, for times in seconds; 0: there is none.
    load_spec(const std::string& text, double rate);

    const std::string& name() const noexcept { return name_; }
    bool given(const std::string& parameter) const { return parameters_.contains(parameter); }

    // Each takes a parameter, or the default where it is not given.
    double number(const std::string& parameter, double otherwise, double low, double high);
    std::uint64_t whole(const std::string& parameter, std::uint64_t otherwise, std::uint64_t low,
                        std::uint64_t high);
    // A number of operations; or a time, "1.5s", at the rate.
    std::uint64_t operations(const std::string& parameter, std::uint64_t otherwise);
    std::string text(const std::string& parameter, const std::string& otherwise);
    // One that must be given.
    std::string text(const std::string& parameter);

    void all_taken() const;
    // For whoever finds a parameter wrong: "--workload NAME, PARAMETER=VALUE: expected ...".
    [[noreturn]] void refuse(const std::string& parameter, const std::string& expected) const;

  private:
    struct given_value {
        std::string value;
        bool taken = false;
    };
    // Null if it is not given.
    const std::string* take(const std::string& name);

    std::string name_;
    double rate_;
    std::map<std::string, given_value> parameters_;
};

} // namespace obase::tools
