// SPDX-License-Identifier: MIT
//
// Page faults of the process so far, all its threads together: minor ones found their page in memory,
// major ones waited for it to be read.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace obase::tools {

struct page_faults {
    std::uint64_t minor = 0;
    std::uint64_t major = 0;

    page_faults since(const page_faults& earlier) const noexcept {
        return {minor - earlier.minor, major - earlier.major};
    }
};

inline page_faults page_faults_so_far() noexcept {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    return {static_cast<std::uint64_t>(used.ru_minflt), static_cast<std::uint64_t>(used.ru_majflt)};
}

} // namespace obase::tools
