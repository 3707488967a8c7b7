// SPDX-License-Identifier: MIT
#include "tools/handles/text_size.hpp"

#include <fmt/format.h>

#include <elf.h>

#include <cstring>
#include <fstream>
#include <stdexcept>

namespace obase::tools {

std::uint64_t text_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_shentsize != sizeof(Elf64_Shdr) ||
        header.e_shoff == 0)
        throw std::runtime_error(
            fmt::format("handles: '{}' is no 64-bit ELF file with sections", path));
    std::uint64_t sum = 0;
    const auto section = [&](std::uint64_t i) {
        Elf64_Shdr s{};
        file.seekg(static_cast<std::streamoff>(header.e_shoff + i * sizeof s));
        file.read(reinterpret_cast<char*>(&s), sizeof s);
        if (!file)
            throw std::runtime_error(fmt::format("handles: '{}' ends in its sections", path));
        return s;
    };
    // With 65,280 sections or more (-ffunction-sections) the first one has their number.
    const std::uint64_t count = header.e_shnum != 0 ? header.e_shnum : section(0).sh_size;
    for (std::uint64_t i = 0; i < count; ++i)
        if (const Elf64_Shdr s = section(i); (s.sh_flags & SHF_EXECINSTR) != 0) sum += s.sh_size;
    return sum;
}

} // namespace obase::tools
