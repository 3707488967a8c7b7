// SPDX-License-Identifier: MIT
#include "tools/bench/bench.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>

namespace obase::tools {

void tell(const std::string& line) {
    if (::isatty(STDERR_FILENO) != 0) fmt::print(stderr, "{} ...\n", line);
}

} // namespace obase::tools
