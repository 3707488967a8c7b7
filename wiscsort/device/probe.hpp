// SPDX-License-Identifier: MIT
//
// Measures the BRAID properties of a directory's device, as far as a file in it and unprivileged calls
// can: sequential and random rates of both directions, how they scale with threads, what is left when
// both are active, the granule. All transfers bypass the page cache where the file system allows it;
// the profile's `source` says if it did not.
#pragma once

#include "wiscsort/model/profile.hpp"

#include <cstdint>
#include <string>

namespace wiscsort::device {

struct probe_settings {
    std::uint64_t file_bytes = 256 << 20;
    double seconds = .3; // of each measurement
    unsigned most_threads = 8;
};

// The file is unnamed and gone at the end. Throws error.
model::profile probe(const std::string& directory, const probe_settings& settings);

} // namespace wiscsort::device
