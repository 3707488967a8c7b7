// SPDX-License-Identifier: MIT
#include "audit/places.hpp"

#include "os/own_memory.hpp"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace obase::audit {

namespace {

using text = std::string_view;

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

    // use(name, symbol) for each function or object.
    template <class Use>
    void for_each_symbol(Use&& use) const noexcept {
        if (!good_) return;
        for (unsigned i = 0; i < header_.e_shnum; ++i) {
            const Elf64_Shdr s = header_of(i);
            if (s.sh_type != SHT_SYMTAB && s.sh_type != SHT_DYNSYM) continue;
            if (s.sh_link >= header_.e_shnum) continue;
            const text names = contents(header_of(s.sh_link));
            const text symbols = contents(s);
            for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size();
                 at += sizeof(Elf64_Sym)) {
                Elf64_Sym symbol;
                std::memcpy(&symbol, symbols.data() + at, sizeof symbol);
                if (symbol.st_shndx != SHN_UNDEF) use(string_at(names, symbol.st_name), symbol);
            }
        }
    }

    static text string_at(text all, std::size_t at) noexcept {
        if (at >= all.size()) return {};
        const std::size_t end = all.find('\0', at);
        return end == text::npos ? text{} : all.substr(at, end - at);
    }

  private:
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

void copy(char* to, std::size_t room, text from) noexcept {
    const std::size_t bytes = std::min(from.size(), room - 1);
    std::memcpy(to, from.data(), bytes);
    to[bytes] = '\0';
}

text last_part(text path) noexcept {
    const std::size_t slash = path.rfind('/');
    return slash == text::npos ? path : path.substr(slash + 1);
}

// Reads on, and stays at the end once that is reached.
class reader {
  public:
    reader(text data, std::size_t at) noexcept : data_(data), at_(std::min(at, data.size())) {}

    template <class T>
    T get() noexcept {
        T value{};
        if (data_.size() - at_ < sizeof value) {
            failed_ = true;
            at_ = data_.size();
            return value;
        }
        std::memcpy(&value, data_.data() + at_, sizeof value);
        at_ += sizeof value;
        return value;
    }
    std::uint64_t unsigned_leb() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            const auto byte = get<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0) return value;
        }
    }
    std::int64_t signed_leb() noexcept {
        std::uint64_t value = 0;
        unsigned shift = 0;
        std::uint8_t byte = 0;
        do {
            byte = get<std::uint8_t>();
            if (shift < 64) value |= std::uint64_t{byte & 0x7fu} << shift;
            shift += 7;
        } while ((byte & 0x80) != 0);
        if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
        return static_cast<std::int64_t>(value);
    }
    text string() noexcept {
        const text found = elf_file::string_at(data_, at_);
        const std::size_t end = data_.find('\0', at_);
        at_ = end == text::npos ? data_.size() : end + 1;
        failed_ = failed_ || end == text::npos;
        return found;
    }
    std::uint64_t offset(bool wide) noexcept {
        return wide ? get<std::uint64_t>() : get<std::uint32_t>();
    }
    void skip(std::uint64_t bytes) noexcept {
        if (bytes > data_.size() - at_) failed_ = true;
        at_ = failed_ ? data_.size() : at_ + bytes;
    }
    std::size_t at() const noexcept { return at_; }
    void go_to(std::size_t at) noexcept { at_ = std::min(at, data_.size()); }
    bool failed() const noexcept { return failed_; }

  private:
    text data_;
    std::size_t at_;
    bool failed_ = false;
};

// DWARF's names for what is used here.
enum : std::uint64_t {
    form_data2 = 0x05,
    form_data4 = 0x06,
    form_data8 = 0x07,
    form_string = 0x08,
    form_block = 0x09,
    form_data1 = 0x0b,
    form_strp = 0x0e,
    form_udata = 0x0f,
    form_data16 = 0x1e,
    form_line_strp = 0x1f,
    content_path = 1,
    content_folder = 2,
};

struct line_sections {
    text lines, line_strings, strings;
};

struct line_row {
    std::uint64_t address = 0;
    std::uint64_t file = 1;
    std::int64_t line = 1;
    std::uint64_t column = 0;
};

// One unit's line table: its header, and the program that makes the rows.
class line_program {
  public:
    line_program(const line_sections& in, std::size_t begin) noexcept
        : in_(in), r_(in.lines, begin) {
        std::uint64_t length = r_.get<std::uint32_t>();
        wide_ = length == 0xffffffff;
        if (wide_) length = r_.get<std::uint64_t>();
        end_ = length <= in.lines.size() - r_.at() ? r_.at() + length : in.lines.size();
        version_ = r_.get<std::uint16_t>();
        if (version_ >= 5) r_.skip(2); // sizes of addresses and segments
        const std::uint64_t header_length = r_.offset(wide_);
        program_ = r_.at() + header_length;
        shortest_ = r_.get<std::uint8_t>();
        if (version_ >= 4) r_.skip(1);
        r_.skip(1);
        line_base_ = r_.get<std::int8_t>();
        line_range_ = r_.get<std::uint8_t>();
        opcode_base_ = r_.get<std::uint8_t>();
        for (unsigned i = 1; i < opcode_base_; ++i) lengths_[i] = r_.get<std::uint8_t>();
        tables_ = r_.at();
        good_ = !r_.failed() && version_ >= 2 && version_ <= 5 && line_range_ != 0;
    }
    std::size_t end() const noexcept { return end_; }

    // The row that covers the address.
    bool find(std::uint64_t address, line_row* out) noexcept {
        if (!good_) return false;
        r_.go_to(program_);
        line_row now, before;
        bool any = false; // rows of this sequence
        const auto row = [&](bool last) {
            const bool covers = any && before.address <= address && address < now.address;
            if (covers) *out = before;
            before = now;
            any = !last;
            return covers;
        };
        while (r_.at() < end_ && !r_.failed()) {
            const auto op = r_.get<std::uint8_t>();
            if (op >= opcode_base_) {
                const unsigned adjusted = op - opcode_base_;
                now.address += adjusted / line_range_ * shortest_;
                now.line += line_base_ + static_cast<int>(adjusted % line_range_);
                if (row(false)) return true;
                continue;
            }
            switch (op) {
            case 0: {
                const std::uint64_t length = r_.unsigned_leb();
                const std::size_t next = r_.at() + length;
                const auto sub = r_.get<std::uint8_t>();
                if (sub == 1) {
                    if (row(true)) return true;
                    now = line_row{};
                } else if (sub == 2) {
                    now.address = r_.get<std::uint64_t>();
                }
                r_.go_to(next);
                break;
            }
            case 1:
                if (row(false)) return true;
                break;
            case 2:
                now.address += r_.unsigned_leb() * shortest_;
                break;
            case 3:
                now.line += r_.signed_leb();
                break;
            case 4:
                now.file = r_.unsigned_leb();
                break;
            case 5:
                now.column = r_.unsigned_leb();
                break;
            case 8:
                now.address += (255u - opcode_base_) / line_range_ * shortest_;
                break;
            case 9:
                now.address += r_.get<std::uint16_t>();
                break;
            default:
                for (unsigned i = 0; i < lengths_[op]; ++i) r_.unsigned_leb();
            }
        }
        return false;
    }

    // The source that was compiled.
    text unit_name() noexcept {
        text folder;
        return good_ ? last_part(file_name(version_ < 5 ? 1 : 0, &folder)) : text{};
    }

    // Its folder is "" where it is that of the compilation.
    text file_name(std::uint64_t number, text* folder) noexcept {
        r_.go_to(tables_);
        *folder = {};
        if (version_ < 5) {
            while (!r_.string().empty()) {
            } // folders
            for (std::uint64_t i = 1; !r_.failed(); ++i) {
                const text name = r_.string();
                if (name.empty() || i == number) return name;
                for (int column = 0; column < 3; ++column) r_.unsigned_leb();
            }
            return {};
        }
        std::uint64_t in = 0;
        entry(0, false, &in); // folders: all of them
        const text name = entry(number, true, &in);
        r_.go_to(tables_);
        std::uint64_t ignored = 0;
        if (in != 0 && !name.starts_with('/')) *folder = entry(in, true, &ignored);
        return name;
    }

  private:
    // Reads a table of version 5. The path of row `number`, where one is wanted.
    text entry(std::uint64_t number, bool wanted, std::uint64_t* folder) noexcept {
        struct column {
            std::uint64_t content, form;
        } columns[16];
        const auto count = r_.get<std::uint8_t>();
        if (count > 16) return {};
        for (unsigned i = 0; i < count; ++i) columns[i] = {r_.unsigned_leb(), r_.unsigned_leb()};
        const std::uint64_t rows = r_.unsigned_leb();
        for (std::uint64_t row = 0; row < rows && !r_.failed(); ++row) {
            text path;
            for (unsigned i = 0; i < count; ++i) {
                std::uint64_t value = 0;
                const text string = form(columns[i].form, &value);
                if (columns[i].content == content_path) path = string;
                if (columns[i].content == content_folder) *folder = value;
            }
            if (wanted && row == number) return path;
        }
        return {};
    }
    text form(std::uint64_t kind, std::uint64_t* value) noexcept {
        switch (kind) {
        case form_string:
            return r_.string();
        case form_line_strp:
            return elf_file::string_at(in_.line_strings, r_.offset(wide_));
        case form_strp:
            return elf_file::string_at(in_.strings, r_.offset(wide_));
        case form_data1:
            *value = r_.get<std::uint8_t>();
            return {};
        case form_data2:
            *value = r_.get<std::uint16_t>();
            return {};
        case form_data4:
            *value = r_.get<std::uint32_t>();
            return {};
        case form_data8:
            *value = r_.get<std::uint64_t>();
            return {};
        case form_data16:
            r_.skip(16);
            return {};
        case form_udata:
            *value = r_.unsigned_leb();
            return {};
        case form_block:
            r_.skip(r_.unsigned_leb());
            return {};
        default:
            r_.go_to(in_.lines.size());
            return {};
        }
    }

    const line_sections& in_;
    reader r_;
    bool wide_ = false;
    bool good_ = false;
    std::size_t end_ = 0;
    unsigned version_ = 0;
    std::size_t program_ = 0;
    std::size_t tables_ = 0;
    unsigned shortest_ = 1;
    int line_base_ = 0;
    unsigned line_range_ = 1;
    unsigned opcode_base_ = 1;
    unsigned lengths_[256] = {};
};

// The next column or line, taken off the front.
text take(text& rest, char end) noexcept {
    const std::size_t at = rest.find(end);
    const text found = rest.substr(0, at);
    rest = at == text::npos ? text{} : rest.substr(at + 1);
    return found;
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

// unit(program) for each line table of the file; true ends it.
template <class Unit>
void for_each_line_table(const elf_file& file, Unit&& unit) {
    const line_sections sections{file.section(".debug_line"), file.section(".debug_line_str"),
                                 file.section(".debug_str")};
    for (std::size_t begin = 0; begin + 4 < sections.lines.size();) {
        line_program one(sections, begin);
        if (unit(one) || one.end() <= begin) return;
        begin = one.end();
    }
}

// The unit of the code at the address, as its line table names it; "": it has none.
text unit_of(const elf_file& file, std::uint64_t at) {
    text found;
    for_each_line_table(file, [&](line_program& unit) {
        line_row row;
        if (!unit.find(at, &row)) return false;
        found = unit.unit_name();
        return true;
    });
    return found;
}

const void* address_in(std::uint64_t number) noexcept {
    return reinterpret_cast<const void*>(number);
}

struct named_function {
    std::uint64_t begin, end;
    text name;
};

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

void for_each_call_from_plain_units(void (*use)(void* context, const void* at,
                                                const char* function) noexcept,
                                    void* context) {
    const elf_file file("/proc/self/exe");
    std::set<text> units, shared; // of the passes
    for (text rest = file.section(".obase.sites"); !rest.empty();) {
        text line = take(rest, '\n');
        const text kind = take(line, '\t');
        if (kind == "unit") units.insert(last_part(line));
        if (kind == "shares") shared.insert(line);
    }
    if (shared.empty()) return;
    std::vector<named_function> all;
    std::map<std::uint64_t, text> targets;
    file.for_each_symbol([&](text name, const Elf64_Sym& symbol) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return;
        all.push_back({symbol.st_value, symbol.st_value + symbol.st_size, name});
        // Where its own unit has no line table nothing can be said of its callers.
        if (shared.contains(name)) targets.emplace(symbol.st_value, name);
    });
    std::erase_if(targets, [&](const auto& one) { return unit_of(file, one.first).empty(); });
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.begin < b.begin; });
    std::uintptr_t bias = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* program, std::size_t, void* p) { // the first is the program
            *static_cast<std::uintptr_t*>(p) = program->dlpi_addr;
            return 1;
        },
        &bias);
    const text code = file.section(".text");
    const std::uint64_t begin = file.section_address(".text");
    std::set<std::uint64_t> told; // calling functions
    constexpr char call = '\xe8', jump = '\xe9';
    for (std::size_t i = 0; !targets.empty() && i + 5 <= code.size(); ++i) {
        if (code[i] != call && code[i] != jump) continue;
        std::int32_t distance = 0;
        std::memcpy(&distance, code.data() + i + 1, sizeof distance);
        const std::uint64_t at = begin + i;
        const auto called =
            targets.find(at + 5 + static_cast<std::uint64_t>(std::int64_t{distance}));
        if (called == targets.end()) continue;
        const auto behind = std::upper_bound(
            all.begin(), all.end(), at, [](std::uint64_t a, const auto& f) { return a < f.begin; });
        if (behind == all.begin() || at >= std::prev(behind)->end) continue;
        const named_function& caller = *std::prev(behind);
        if (shared.contains(caller.name) || units.contains(unit_of(file, at))) continue;
        if (!told.insert(caller.begin).second) continue;
        use(context, address_in(bias + at + 5), std::string(called->second).c_str());
    }
}

} // namespace obase::audit
