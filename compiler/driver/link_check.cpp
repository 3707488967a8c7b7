// SPDX-License-Identifier: MIT
//
// Run by the drivers after linking: names the objects that were compiled without the passes and have to do with
// functions on marked fields. They may access the fields as plain pointers. What is not linked by the drivers, or is loaded
// later, the runtime names when it starts (src/audit/plain_units.hpp).
//
//     obase-link-check PROGRAM INPUT...              objects, archives, shared libraries, -LDIR, -lNAME
//     obase-link-check --run LINKER ARGUMENT...      runs it, and takes both from its arguments (ObaseInstrument.cmake)
//
// PROGRAM has the table of all units (.obase.sites, compiler/passes/site_table.cpp), with the functions on marked fields that
// others see, and variables. An object without such a section that names one of them is told in a line. Libraries are
// looked for in the folders that are named, not in those of the system. Files that are no ELF are left alone. The exit status
// is 0: it may be right, if it only hands on what it got; or that of the linker.
#include <elf.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace {

using text = std::string_view;

std::string contents_of(const char* path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// An ELF file in memory. What does not fit into it is empty.
class object {
  public:
    explicit object(text bytes) : bytes_(bytes) {
        if (bytes.size() < sizeof header_ || bytes.substr(0, SELFMAG) != ELFMAG) return;
        std::memcpy(&header_, bytes.data(), sizeof header_);
        good_ = header_.e_ident[EI_CLASS] == ELFCLASS64 &&
                header_.e_shentsize == sizeof(Elf64_Shdr) && header_.e_shoff <= bytes.size() &&
                header_.e_shnum <= (bytes.size() - header_.e_shoff) / sizeof(Elf64_Shdr) &&
                header_.e_shstrndx < header_.e_shnum;
    }
    bool good() const { return good_; }

    bool has_section(text name) const { return find(name) != nullptr_section; }
    text section(text name) const {
        const unsigned at = find(name);
        return at == nullptr_section ? text{} : bytes_of(at);
    }
    // Of a shared library what it gets from elsewhere, and copies of inline functions.
    template <class Use>
    void for_each_global(Use&& use) const {
        const bool shared = header_.e_type == ET_DYN;
        for (unsigned i = 0; good_ && i < header_.e_shnum; ++i) {
            const Elf64_Shdr s = section_header(i);
            if (s.sh_type != (shared ? SHT_DYNSYM : SHT_SYMTAB) || s.sh_link >= header_.e_shnum)
                continue;
            const text names = bytes_of(s.sh_link);
            const text symbols = bytes_of(i);
            for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= symbols.size();
                 at += sizeof(Elf64_Sym)) {
                Elf64_Sym symbol;
                std::memcpy(&symbol, symbols.data() + at, sizeof symbol);
                const unsigned binding = ELF64_ST_BIND(symbol.st_info);
                if (shared ? symbol.st_shndx == SHN_UNDEF || binding == STB_WEAK
                           : binding != STB_LOCAL)
                    use(string_at(names, symbol.st_name));
            }
        }
    }

  private:
    static constexpr unsigned nullptr_section = ~0U;

    static text string_at(text all, std::size_t at) {
        return at < all.size() ? all.substr(at, all.find('\0', at) - at) : text{};
    }
    Elf64_Shdr section_header(unsigned number) const {
        Elf64_Shdr s;
        std::memcpy(&s, bytes_.data() + header_.e_shoff + number * sizeof s, sizeof s);
        return s;
    }
    text bytes_of(unsigned number) const {
        const Elf64_Shdr s = section_header(number);
        if (s.sh_type == SHT_NOBITS || s.sh_offset > bytes_.size() ||
            s.sh_size > bytes_.size() - s.sh_offset)
            return {};
        return bytes_.substr(s.sh_offset, s.sh_size);
    }
    unsigned find(text name) const {
        if (!good_) return nullptr_section;
        const text names = bytes_of(header_.e_shstrndx);
        for (unsigned i = 0; i < header_.e_shnum; ++i)
            if (string_at(names, section_header(i).sh_name) == name) return i;
        return nullptr_section;
    }

    text bytes_;
    Elf64_Ehdr header_{};
    bool good_ = false;
};

std::set<std::string, std::less<>> shared_by(text table) {
    std::set<std::string, std::less<>> found;
    while (!table.empty()) {
        const text line = table.substr(0, table.find('\n'));
        table.remove_prefix(std::min(table.size(), line.size() + 1));
        constexpr text shares = "shares\t";
        if (line.starts_with(shares)) found.emplace(line.substr(shares.size()));
    }
    return found;
}

void look_at(const std::string& name, text bytes,
             const std::set<std::string, std::less<>>& shared) {
    const object one(bytes);
    if (!one.good() || one.has_section(".obase.sites")) return;
    std::string named;
    one.for_each_global([&](text symbol) {
        if (!shared.contains(symbol) || named.size() > 200) return;
        named += (named.empty() ? "'" : ", '") + std::string(symbol) + "'";
    });
    if (named.empty()) return;
    std::fprintf(stderr,
                 "obase: warning: %s was compiled without obase-clang and names %s, which work on "
                 "marked fields; if it accesses such a field itself, or has a copy of an inline "
                 "function that "
                 "does, compile it with obase-clang\n",
                 name.c_str(), named.c_str());
}

// The members of `ar`: a header of 60 bytes each, padded to an even size. Names longer than 15 characters
// stand in the member "//".
void look_into(const char* path, text bytes, const std::set<std::string, std::less<>>& shared) {
    text names;
    for (std::size_t at = 8; at + 60 <= bytes.size();) {
        const std::size_t size =
            std::strtoul(std::string(bytes.substr(at + 48, 10)).c_str(), nullptr, 10);
        text name = bytes.substr(at, 16);
        name = name.substr(0, name.find_last_not_of(' ') + 1);
        const text member = bytes.substr(std::min(bytes.size(), at + 60), size);
        if (name == "//")
            names = member;
        else if (name.size() > 1 && name[0] == '/') {
            const std::size_t from = std::strtoul(std::string(name.substr(1)).c_str(), nullptr, 10);
            name = from < names.size() ? names.substr(from, names.find('/', from) - from) : name;
        } else if (name.ends_with('/'))
            name.remove_suffix(1);
        look_at(std::string(path) + "(" + std::string(name) + ")", member, shared);
        at += 60 + size + size % 2;
    }
}

// As the linker finds it: in the first folder that has one, the shared library before the archive. "": in none.
std::string library(text name, const std::vector<std::string>& folders) {
    const bool exact = name.starts_with(':');
    for (const std::string& folder : folders)
        for (const char* end : {".so", ".a"}) {
            const std::string path = folder + "/" + (exact ? "" : "lib") +
                                     std::string(name.substr(exact)) + (exact ? "" : end);
            if (access(path.c_str(), R_OK) == 0) return path;
        }
    return {};
}

void check(const char* program_path, const std::vector<text>& inputs) {
    const std::string program = contents_of(program_path);
    const auto shared = shared_by(object(program).section(".obase.sites"));
    if (shared.empty()) return;
    std::vector<std::string> folders;
    for (const text input : inputs)
        if (input.starts_with("-L")) folders.emplace_back(input.substr(2));
    for (const text input : inputs) {
        if (input.starts_with("-L")) continue;
        const std::string path =
            input.starts_with("-l") ? library(input.substr(2), folders) : std::string(input);
        const std::string bytes = contents_of(path.c_str());
        if (bytes.starts_with("!<arch>\n"))
            look_into(path.c_str(), bytes, shared);
        else
            look_at(path, bytes, shared);
    }
}

bool is_input(text argument) {
    if (argument.starts_with("-L") || argument.starts_with("-l")) return argument.size() > 2;
    return argument.ends_with(".o") || argument.ends_with(".a") || argument.ends_with(".so") ||
           argument.find(".so.") != text::npos;
}

// The exit status of the command.
int run(char** command) {
    pid_t child = 0;
    if (const int error = posix_spawnp(&child, command[0], nullptr, nullptr, command, environ);
        error != 0) {
        std::fprintf(stderr, "obase-link-check: '%s' cannot be run: %s\n", command[0],
                     std::strerror(error));
        return 127;
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 0;
    if (text(argv[1]) != "--run") {
        check(argv[1], {argv + 2, argv + argc});
        return 0;
    }
    if (const int status = run(argv + 2); status != 0) return status;
    const char* program = "a.out";
    std::vector<text> inputs;
    for (int i = 3; i < argc; ++i) {
        const text argument = argv[i];
        if (argument == "-o" && i + 1 < argc)
            program = argv[++i];
        else if (is_input(argument))
            inputs.push_back(argument);
    }
    check(program, inputs);
    return 0;
}
