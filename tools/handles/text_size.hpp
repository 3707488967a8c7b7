// SPDX-License-Identifier: MIT
//
// How many bytes of machine code an object file or an executable has.
#pragma once

#include <cstdint>
#include <string>

namespace obase::tools {

// The sum of the sections that are executed, of a file for 64-bit ELF with section headers. Throws std::runtime_error,
// naming the file, if it is none.
std::uint64_t text_bytes(const std::string& path);

} // namespace obase::tools
