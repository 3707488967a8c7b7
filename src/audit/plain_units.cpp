// SPDX-License-Identifier: MIT
#include "audit/plain_units.hpp"

#include "audit/line_table.hpp"
#include "audit/places.hpp"

#include <link.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <new>
#include <string_view>
#include <vector>

namespace obase::audit {

namespace {

constexpr const char* program_path = "/proc/self/exe";
constexpr text checked_by_driver = "obase_units_checked"; // compiler/driver/obase-clang.in

struct loaded_file {
    std::string path;
    std::uintptr_t bias;
};

struct list_of_files {
    unsigned long long loaded; // of before, and now
    std::vector<loaded_file> files;
    bool no_memory = false;
};

// The first is the program.
int note_file(dl_phdr_info* info, std::size_t bytes, void* p) noexcept {
    auto& all = *static_cast<list_of_files*>(p);
    if (all.files.empty() && bytes > offsetof(dl_phdr_info, dlpi_adds)) {
        if (info->dlpi_adds == all.loaded) return 1;
        all.loaded = info->dlpi_adds;
    }
    try {
        const bool program = info->dlpi_name == nullptr || info->dlpi_name[0] == '\0';
        all.files.push_back({program ? program_path : info->dlpi_name, info->dlpi_addr});
    } catch (const std::bad_alloc&) {
        all.no_memory = true;
    }
    return all.no_memory ? 1 : 0;
}

struct site_table {
    std::set<text> units;
    std::set<text> shared;

    explicit site_table(const elf_file& file) {
        for (text rest = file.section(".obase.sites"); !rest.empty();) {
            text line = take(rest, '\n');
            const text kind = take(line, '\t');
            if (kind == "unit") units.insert(last_part(line));
            if (kind == "shares") shared.insert(line);
        }
    }
};

struct stretch {
    std::uint64_t begin, end;
    text name;
    bool operator<(const stretch& other) const noexcept { return begin < other.begin; }
};

// The one that has the address; null: none.
const stretch* find(const std::vector<stretch>& ascending, std::uint64_t at) noexcept {
    const auto behind = std::upper_bound(ascending.begin(), ascending.end(), stretch{at, at, {}});
    if (behind == ascending.begin() || at >= std::prev(behind)->end) return nullptr;
    return &*std::prev(behind);
}

// use(address behind the call, caller, function), for the first call of each calling function. By the file's addresses.
template <class Use>
void for_each_call(const elf_file& file, const site_table& sites, Use&& use) {
    if (sites.shared.empty()) return;
    std::vector<stretch> of_passes; // their code
    for_each_line_table(file, [&](line_program& unit) {
        if (sites.units.contains(unit.unit_name()))
            unit.for_each_stretch([&](std::uint64_t begin, std::uint64_t end) {
                of_passes.push_back({begin, end, {}});
            });
        return false;
    });
    std::sort(of_passes.begin(), of_passes.end());
    std::vector<stretch> functions;
    std::map<std::uint64_t, text> targets;
    file.for_each_symbol([&](text name, const Elf64_Sym& symbol) {
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) return;
        functions.push_back({symbol.st_value, symbol.st_value + symbol.st_size, name});
        // Where its own unit has no line table nothing can be said of its callers.
        if (sites.shared.contains(name) && find(of_passes, symbol.st_value) != nullptr)
            targets.emplace(symbol.st_value, name);
    });
    std::sort(functions.begin(), functions.end());
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
        const stretch* const caller = find(functions, at);
        if (caller == nullptr || sites.shared.contains(caller->name) ||
            find(of_passes, at) != nullptr || !told.insert(caller->begin).second)
            continue;
        use(at + 5, caller->name, called->second);
    }
}

const void* address_in(std::uint64_t number) noexcept {
    return reinterpret_cast<const void*>(number);
}

// 'a', 'b', 'c' and 7 more
class list_of_names {
  public:
    void add(const std::string& name) {
        constexpr unsigned most = 3;
        if (++count_ <= most) names_ += (count_ == 1 ? "" : ", ") + name;
    }
    bool empty() const { return count_ == 0; }
    std::string text() const {
        return count_ <= 3 ? names_ : names_ + " and " + std::to_string(count_ - 3) + " more";
    }

  private:
    unsigned count_ = 0;
    std::string names_;
};

constexpr const char* advice = "; if it accesses such a field itself, or has a copy of an inline "
                               "function that does, compile it "
                               "with obase-clang (OBASE_CHECK_UNITS=0: nothing is said)";

// Of code that is linked with units of the passes.
void look_into(const elf_file& file, std::uintptr_t bias, const site_table& sites,
               void (*tell)(void*, const char*), void* context) {
    list_of_names calls;
    for_each_call(file, sites, [&](std::uint64_t behind, text caller, text function) {
        source_place at;
        find_source(address_in(bias + behind), true, at);
        calls.add(std::string(caller) +
                  (at.line == 0
                       ? ""
                       : " (" + std::string(at.file) + ":" + std::to_string(at.line) + ")") +
                  " calls '" + std::string(function) + "'");
    });
    if (calls.empty()) return;
    tell(context, ("code that was compiled without obase-clang calls functions on marked fields: " +
                   calls.text() + advice)
                      .c_str());
}

// Of a library without any.
void look_at(const loaded_file& library, const elf_file& file,
             const std::set<std::string, std::less<>>& shared, void (*tell)(void*, const char*),
             void* context) {
    list_of_names names;
    std::set<text> told;
    file.for_each_dynamic_symbol([&](text name, const Elf64_Sym& symbol) {
        // What it defines itself it does not get from elsewhere, but for copies of inline functions.
        const bool elsewhere =
            symbol.st_shndx == SHN_UNDEF || ELF64_ST_BIND(symbol.st_info) == STB_WEAK;
        if (elsewhere && shared.contains(name) && told.insert(name).second)
            names.add("'" + std::string(name) + "'");
    });
    if (names.empty()) return;
    tell(context, (library.path + " was compiled without obase-clang and names " + names.text() +
                   ", which work on marked fields" + advice)
                      .c_str());
}

} // namespace

void for_each_call_from_plain_units(void (*use)(void* context, const void* behind,
                                                const char* function) noexcept,
                                    void* context) {
    const elf_file file(program_path);
    std::uintptr_t bias = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* program, std::size_t, void* p) { // the first is the program
            *static_cast<std::uintptr_t*>(p) = program->dlpi_addr;
            return 1;
        },
        &bias);
    for_each_call(file, site_table(file), [&](std::uint64_t behind, text, text function) {
        use(context, address_in(bias + behind), std::string(function).c_str());
    });
}

void plain_units::look(void (*tell)(void* context, const char* line), void* context) {
    list_of_files now{loaded_, {}};
    dl_iterate_phdr(&note_file, &now);
    if (now.no_memory) throw std::bad_alloc();
    loaded_ = now.loaded;
    std::erase_if(now.files,
                  [&](const loaded_file& each) { return !seen_.insert(each.path).second; });
    // What is shared, first: the order of what is loaded says nothing.
    std::vector<const loaded_file*> others;
    for (const loaded_file& each : now.files) {
        const elf_file file(each.path.c_str());
        const site_table sites(file);
        if (sites.units.empty()) {
            others.push_back(&each);
            continue;
        }
        bool checked = false;
        file.for_each_symbol(
            [&](text name, const Elf64_Sym&) { checked = checked || name == checked_by_driver; });
        if (checked)
            file.for_each_needed([&](text name) { named_.emplace(last_part(name)); });
        else
            look_into(file, each.bias, sites, tell, context);
        file.for_each_dynamic_symbol([&](text name, const Elf64_Sym& symbol) {
            if (symbol.st_shndx != SHN_UNDEF && sites.shared.contains(name)) shared_.emplace(name);
        });
    }
    if (shared_.empty()) return;
    for (const loaded_file* const each : others)
        if (!named_.contains(last_part(each->path)))
            look_at(*each, elf_file(each->path.c_str()), shared_, tell, context);
}

} // namespace obase::audit
