// SPDX-License-Identifier: MIT
#include "tools/workload/operation_names.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace workload {
namespace {

constexpr std::array<std::pair<std::string_view, operation>, 24> operation_names = {{
    {"get", operation::read},
    {"get_lease", operation::read},
    {"put", operation::update},
    {"set_lease", operation::update},
    {"set", operation::update},
    {"gets", operation::read},
    {"read", operation::read},
    {"add", operation::update},
    {"replace", operation::update},
    {"cas", operation::update},
    {"update", operation::update},
    {"write", operation::update},
    {"insert", operation::insert},
    {"seek", operation::scan},
    {"scan", operation::scan},
    {"merge", operation::read_modify_write},
    {"incr", operation::read_modify_write},
    {"decr", operation::read_modify_write},
    {"append", operation::read_modify_write},
    {"prepend", operation::read_modify_write},
    {"rmw", operation::read_modify_write},
    {"delete", operation::erase},
    {"erase", operation::erase},
    {"remove", operation::erase},
}};

} // namespace

bool equal_ignoring_case(std::string_view text, std::string_view small) noexcept {
    return text.size() == small.size() &&
           std::equal(text.begin(), text.end(), small.begin(), [](char a, char b) {
               return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
           });
}

std::optional<operation> operation_named(std::string_view name) noexcept {
    for (const auto& [text, what] : operation_names)
        if (equal_ignoring_case(name, text)) return what;
    return std::nullopt;
}

} // namespace workload
