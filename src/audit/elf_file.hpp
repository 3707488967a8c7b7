// SPDX-License-Identifier: MIT
//
// elf_file: a program or library as it lies in its file: sections, symbols, what it needs.
//
//     const elf_file file("/proc/self/exe");
//     for (text rest = file.section(".obase.sites"); !rest.empty();) { text line = take(rest, '\n'); ... }
//
// A file that cannot be read, or is no ELF file of 64 bits, has nothing in it. Allocates nothing; async-signal-safe.
#pragma once

#include "os/own_memory.hpp"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace obase::audit {

using text = std::string_view;

// The sections of an ELF file. Every offset is checked: the file is not ours.
class elf_file {
  public:
    explicit elf_file(const char* path) noexcept {
        if (!os::map_for_reading(path, &file_)) return;
        if (file_.bytes < sizeof(Elf64_Ehdr) || std::memcmp(file_.begin, ELFMAG, SELFMAG) != 0)
            return;
        std::memcpy(&header_, file_.begin, sizeof header_);
        good_ = header_.e_ident[EI_CLASS] == ELFCLASS64 &&
                header_.e_shentsize == sizeof(Elf64_Shdr) && header_.e_shoff <= file_.bytes &&
                header_.e_shnum <= (file_.bytes - header_.e_shoff) / sizeof(Elf64_Shdr) &&
                header_.e_shstrndx < header_.e_shnum;
    }
    ~elf_file() { os::unmap(file_); }
    elf_file(const elf_file&) = delete;
    elf_file& operator=(const elf_file&) = delete;

    text section(const char* name) const noexcept {
        if (!good_) return {};
        const text names = contents(header_of(header_.e_shstrndx));
        for (unsigned i = 0; i < header_.e_shnum; ++i) {
            const Elf64_Shdr s = header_of(i);
            if (string_at(names, s.sh_name) == name)
                return (s.sh_flags & SHF_COMPRESSED) != 0 ? text{} : contents(s);
        }
        return {};
    }

    std::uint64_t section_address(const char* name) const noexcept {
        if (!good_) return 0;
        const text names = contents(header_of(header_.e_shstrndx));
        for (unsigned i = 0; i < header_.e_shnum; ++i)
            if (string_at(names, header_of(i).sh_name) == name) return header_of(i).sh_addr;
        return 0;
    }

    // use(name, symbol) for each that is defined here.
    template <class Use>
    void for_each_symbol(Use&& use) const {
        for (const unsigned table : {unsigned{SHT_SYMTAB}, unsigned{SHT_DYNSYM}})
            for_each_in(table, [&](text name, const Elf64_Sym& symbol) {
                if (symbol.st_shndx != SHN_UNDEF) use(name, symbol);
            });
    }
    // Likewise for what the loader sees, defined here or not.
    template <class Use>
    void for_each_dynamic_symbol(Use&& use) const {
        for_each_in(SHT_DYNSYM, use);
    }
    // use(name) for each library that it is linked with.
    template <class Use>
    void for_each_needed(Use&& use) const {
        const text entries = section(".dynamic");
        const text names = section(".dynstr");
        for (std::size_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size();
             at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry;
            std::memcpy(&entry, entries.data() + at, sizeof entry);
            if (entry.d_tag == DT_NEEDED) use(string_at(names, entry.d_un.d_val));
        }
    }

    static text string_at(text all, std::size_t at) noexcept {
        if (at >= all.size()) return {};
        const std::size_t end = all.find('\0', at);
        return end == text::npos ? text{} : all.substr(at, end - at);
    }

  private:
    template <class Use>
    void for_each_in(unsigned type, Use&& use) const {
        for (unsigned i = 0; good_ && i < header_.e_shnum; ++i) {
            const Elf64_Shdr s = header_of(i);
            if (s.sh_type != type || s.sh_link >= header_.e_shnum) continue;
            const text names = contents(header_of(s.sh_link));
            const text symbols = contents(s);
            for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size();
                 at += sizeof(Elf64_Sym)) {
                Elf64_Sym symbol;
                std::memcpy(&symbol, symbols.data() + at, sizeof symbol);
                use(string_at(names, symbol.st_name), symbol);
            }
        }
    }
    Elf64_Shdr header_of(unsigned number) const noexcept {
        Elf64_Shdr s;
        std::memcpy(&s, file_.begin + header_.e_shoff + number * sizeof s, sizeof s);
        return s;
    }
    text contents(const Elf64_Shdr& s) const noexcept {
        if (s.sh_type == SHT_NOBITS || s.sh_offset > file_.bytes ||
            s.sh_size > file_.bytes - s.sh_offset)
            return {};
        return {file_.begin + s.sh_offset, s.sh_size};
    }

    os::mapped_file file_;
    Elf64_Ehdr header_{};
    bool good_ = false;
};

inline text last_part(text path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == text::npos ? path : path.substr(slash + 1);
}

// The next column or line, taken off the front.
inline text take(text& rest, char end) noexcept {
    const std::size_t at = rest.find(end);
    const text found = rest.substr(0, at);
    rest = at == text::npos ? text{} : rest.substr(at + 1);
    return found;
}

} // namespace obase::audit
