// SPDX-License-Identifier: MIT
//
// Code counts, data does not; what is no object file is told by name.
#include "tools/handles/text_size.hpp"

#include <gtest/gtest.h>

#include <elf.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace obase::tools {
namespace {

class TextSize : public testing::Test {
  protected:
    TextSize() : path_(testing::TempDir() + "text_size_test." + std::to_string(::getpid())) {}
    ~TextSize() override { std::remove(path_.c_str()); }

    // A file with these sections: flags and size.
    void write(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& sections,
               bool many = false, std::size_t cut = 0) const {
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_shoff = sizeof header;
        header.e_shentsize = sizeof(Elf64_Shdr);
        header.e_shnum = many ? 0 : static_cast<Elf64_Half>(sections.size());
        std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
        for (const auto& [flags, size] : sections) {
            Elf64_Shdr s{};
            s.sh_flags = flags;
            s.sh_size = size;
            bytes.append(reinterpret_cast<const char*>(&s), sizeof s);
        }
        std::ofstream(path_, std::ios::binary) << bytes.substr(0, bytes.size() - cut);
    }

    std::string path_;
};

TEST_F(TextSize, IsTheSumOfWhatIsExecuted) {
    write({{0, 0},
           {SHF_ALLOC | SHF_EXECINSTR, 100},
           {SHF_ALLOC | SHF_WRITE, 7},
           {SHF_ALLOC | SHF_EXECINSTR, 23}});
    EXPECT_EQ(text_bytes(path_), 123u);
}

TEST_F(TextSize, OfVeryManySectionsTheFirstHasTheNumber) {
    write({{0, 3}, {SHF_EXECINSTR, 5}, {SHF_EXECINSTR, 6}}, true);
    EXPECT_EQ(text_bytes(path_), 11u);
}

TEST_F(TextSize, WhatIsNoObjectFileIsToldByName) {
    const auto message = [&] {
        try {
            text_bytes(path_);
        } catch (const std::runtime_error& error) {
            return std::string(error.what());
        }
        return std::string();
    };
    EXPECT_NE(message().find(path_), std::string::npos); // not there
    std::ofstream(path_)
        << "int main(void) { return 0; } /* a source and not an object, longer than a header */";
    EXPECT_NE(message().find(path_), std::string::npos);
    write({{0, 0}, {SHF_EXECINSTR, 5}}, false, 20); // cut off
    EXPECT_NE(message().find(path_), std::string::npos);
}

// This program's own code.
TEST_F(TextSize, OfAnExecutableIsMoreThanNothing) {
    EXPECT_GT(text_bytes("/proc/self/exe"), 10'000u);
}

} // namespace
} // namespace obase::tools
