// SPDX-License-Identifier: MIT
//
// What a request does, whether drawn (ycsb_mix.hpp) or recorded (trace.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace workload {

enum class operation : std::uint8_t {
    read,
    update, // replace the value; in a trace, also insert it if it is not there
    insert, // a key that was never used before
    scan,
    read_modify_write,
    erase,
};
inline constexpr std::size_t operation_count = 6;

constexpr std::string_view name_of(operation what) noexcept {
    switch (what) {
    case operation::read:
        return "read";
    case operation::update:
        return "update";
    case operation::insert:
        return "insert";
    case operation::scan:
        return "scan";
    case operation::read_modify_write:
        return "read_modify_write";
    case operation::erase:
        return "erase";
    }
    return "?";
}

} // namespace workload
