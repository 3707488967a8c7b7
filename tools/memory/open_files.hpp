// SPDX-License-Identifier: MIT
//
// What files this process has open: descriptors, and the disk space of files that have no name any more, as those
// in which heaps lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace obase::tools {

struct open_files {
    std::size_t descriptors = 0;
    std::uint64_t unnamed_bytes = 0; // on the disk, not the files' lengths; without `directory` 0
};

// `directory`: only files on its file system count as unnamed ones; may be empty. Zeros where /proc does not tell.
open_files files_of_this_process(const std::string& directory);

} // namespace obase::tools
