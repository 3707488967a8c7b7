// SPDX-License-Identifier: MIT
//
// How wiscsort says that it cannot go on. Every failure is one of two exceptions with one message that
// names the file, the place in it and what was expected. The program maps them to its exit codes.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace wiscsort {

// The data, the machine or the file system is at fault. Exit code 1.
class error : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// What was asked for makes no sense, whatever the data is. Exit code 2.
class usage_error : public error {
  public:
    using error::error;
};

template <class... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    throw error(fmt::format(text, std::forward<Arguments>(arguments)...));
}

template <class... Arguments>
[[noreturn]] void refuse(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    throw usage_error(fmt::format(text, std::forward<Arguments>(arguments)...));
}

inline std::string describe_errno(int number) {
    char buffer[128];
    return ::strerror_r(number, buffer, sizeof buffer);
}

} // namespace wiscsort
