// SPDX-License-Identifier: MIT
#include "audit/places.hpp"

#include "audit/line_table.hpp"

#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace obase::audit {

namespace {

// The file that is loaded where the address lies, and how far from where it was linked.
struct module {
    const void* address;
    std::uintptr_t bias = 0;
    char path[512] = "";
    bool found = false;
};

int look_at_module(dl_phdr_info* info, std::size_t, void* p) {
    auto& wanted = *static_cast<module*>(p);
    const auto address = reinterpret_cast<std::uintptr_t>(wanted.address);
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& segment = info->dlpi_phdr[i];
        if (segment.p_type != PT_LOAD ||
            address - (info->dlpi_addr + segment.p_vaddr) >= segment.p_memsz)
            continue;
        wanted.bias = info->dlpi_addr;
        const bool program = info->dlpi_name == nullptr || info->dlpi_name[0] == '\0';
        std::snprintf(wanted.path, sizeof wanted.path, "%s",
                      program ? "/proc/self/exe" : info->dlpi_name);
        wanted.found = true;
        return 1;
    }
    return 0;
}

void copy(char* to, std::size_t room, text from) noexcept {
    const std::size_t bytes = std::min(from.size(), room - 1);
    std::memcpy(to, from.data(), bytes);
    to[bytes] = '\0';
}

unsigned number(text digits) noexcept {
    unsigned value = 0;
    for (const char c : digits) {
        if (c < '0' || c > '9') break;
        value = value * 10 + static_cast<unsigned>(c - '0');
    }
    return value;
}

// The field of the site at out's file, line and column. Several units may have the same header.
void find_field(text table, source_place& out) noexcept {
    const text file = last_part(out.file);
    text unit = table; // where the fields of the unit are that is being read
    text rest = table;
    bool vague = false; // found by a row without a column
    while (!rest.empty()) {
        const text here = rest;
        text line = take(rest, '\n');
        const text kind = take(line, '\t');
        if (kind == "unit") unit = here;
        if (kind != "site") continue;
        take(line, '\t'); // what is done there
        const text id = take(line, '\t');
        if (last_part(take(line, '\t')) != file) continue;
        if (number(take(line, '\t')) != out.line) continue;
        const unsigned column = number(line);
        if (column != 0 && column != out.column) continue;
        if (column == 0 && vague) continue;
        text fields = unit;
        take(fields, '\n');
        while (!fields.empty()) {
            text row = take(fields, '\n');
            const text word = take(row, '\t');
            if (word == "unit") break;
            if (word != "field" || take(row, '\t') != id) continue;
            copy(out.field, sizeof out.field, take(row, '\t'));
            copy(out.type, sizeof out.type, take(row, '\t'));
            copy(out.declared, sizeof out.declared, row);
            break;
        }
        if (column != 0) return;
        vague = true;
    }
}

} // namespace

void find_source(const void* address, bool is_return, source_place& out) noexcept {
    out = source_place{};
    if (address == nullptr) return;
    module in{static_cast<const char*>(address) - (is_return ? 1 : 0)};
    dl_iterate_phdr(&look_at_module, &in);
    if (!in.found) return;
    const elf_file file(in.path);
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(in.address) - in.bias;
    file.for_each_symbol([&](text name, const Elf64_Sym& symbol) {
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && at - symbol.st_value < symbol.st_size)
            copy(out.function, sizeof out.function, name);
    });
    for_each_line_table(file, [&](line_program& unit) {
        line_row row;
        if (!unit.find(at, &row)) return false;
        text folder;
        const text name = unit.file_name(row.file, &folder);
        std::snprintf(out.file, sizeof out.file, "%.*s%s%.*s", static_cast<int>(folder.size()),
                      folder.data(), folder.empty() ? "" : "/", static_cast<int>(name.size()),
                      name.data());
        out.line = static_cast<unsigned>(row.line);
        out.column = static_cast<unsigned>(row.column);
        return true;
    });
    if (out.line != 0) find_field(file.section(".obase.sites"), out);
}

bool find_variable(const void* address, char* name, std::size_t room, std::size_t* offset,
                   std::size_t* bytes) noexcept {
    module in{address};
    dl_iterate_phdr(&look_at_module, &in);
    if (!in.found) return false;
    const elf_file file(in.path);
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(address) - in.bias;
    bool found = false;
    file.for_each_symbol([&](text symbol_name, const Elf64_Sym& symbol) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || at - symbol.st_value >= symbol.st_size)
            return;
        copy(name, room, symbol_name);
        *offset = at - symbol.st_value;
        if (bytes != nullptr) *bytes = symbol.st_size;
        found = true;
    });
    return found;
}

} // namespace obase::audit
