// SPDX-License-Identifier: MIT
//
// The visibility file: what the front end decided for one translation unit, for people and scripts.
// Columns are separated by tabs; docs/compiler.md describes them.
#pragma once

#include "checks.hpp"

#include <string>

namespace obase::frontend {

// `path` may be a directory; the file is then named after the source and its folder.
// Empty if it was written, else what went wrong.
std::string write_visibility_file(unit& in, llvm::StringRef path, llvm::StringRef source,
                                  const outside_marks& outside);

} // namespace obase::frontend
