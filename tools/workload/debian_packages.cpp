// SPDX-License-Identifier: MIT
#include "tools/workload/debian_packages.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <limits>
#include <system_error>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <sys/wait.h>

namespace workload {
namespace {

// Longer names of packages do not exist; what is longer is a damaged file.
constexpr std::size_t longest_name = 512;

[[noreturn]] void fail(std::string_view source, std::size_t line, const std::string& what) {
    throw bad_package_list(std::string(source) + ", line " + std::to_string(line) + ": " + what);
}

std::string quoted(std::string_view text) {
    std::string result = "'";
    for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
    return result + (text.size() > 40 ? "...'" : "'");
}

// What follows the colon of the line.
std::string_view value_of(std::string_view line) noexcept {
    return detail::trimmed(line.substr(line.find(':') + 1));
}

bool is_package_name(std::string_view name) noexcept {
    return !name.empty() && name.size() <= longest_name && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '+' || c == '-' || c == '.' || c == '_' || c == '~';
    });
}

void append_all(std::string& text, std::FILE* file) {
    std::vector<char> part(1 << 16);
    for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), file)) > 0;)
        text.append(part.data(), got);
}

// The standard output of a command, which must succeed.
std::string output_of(const char* command) {
    std::FILE* const pipe = ::popen(command, "re");
    if (pipe == nullptr)
        throw std::runtime_error(std::string(command) +
                                 ": cannot be run: " + std::generic_category().message(errno));
    std::string text;
    try {
        append_all(text, pipe);
    } catch (...) {
        ::pclose(pipe);
        throw;
    }
    const int status = ::pclose(pipe);
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        const bool missing = status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 127;
        throw std::runtime_error(std::string(command) +
                                 (missing ? ": not found; is this a Debian system?" : ": failed"));
    }
    return text;
}

} // namespace

package_list package_list::parse(std::string text, std::string_view source) {
    package_list list;
    list.text_ = std::make_unique<const std::string>(std::move(text));
    const std::string_view all = *list.text_;
    std::unordered_set<std::string_view> keys;
    keys.reserve(all.size() / 512);

    std::string_view name, architecture, version;
    std::size_t stanza_begin = 0, stanza_line = 0, line_number = 0;
    bool inside = false;
    const auto finish = [&](std::size_t end) {
        if (!inside) return;
        inside = false;
        if (name.empty()) fail(source, stanza_line, "a stanza without the field Package");
        const auto longer = [&](const std::string& key) -> std::string_view {
            return list.longer_keys_.emplace_back(key);
        };
        std::string_view key = name;
        if (!keys.insert(key).second) {
            key = longer(std::string(name) + ':' + std::string(architecture));
            if (!keys.insert(key).second) {
                key = longer(std::string(key) + '=' + std::string(version));
                if (!keys.insert(key).second) {
                    ++list.repeated_;
                    return;
                }
            }
        }
        list.packages_.push_back({key, name, all.substr(stanza_begin, end - stanza_begin)});
    };

    for (std::size_t at = 0; at < all.size();) {
        const std::size_t begin = at;
        const std::string_view line = detail::take_line(all, at);
        ++line_number;
        if (line.empty()) {
            finish(begin);
            continue;
        }
        if (detail::continues_field(line)) {
            if (!inside) fail(source, line_number, "a continuation line without a field before it");
            continue;
        }
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos || colon == 0 ||
            !std::ranges::all_of(line.substr(0, colon), [](char c) { return c > ' ' && c <= '~'; }))
            fail(source, line_number,
                 quoted(line) + " is neither 'Field: value' nor the continuation of a field");
        if (!inside) {
            inside = true;
            stanza_begin = begin;
            stanza_line = line_number;
            name = architecture = version = {};
        }
        if (detail::is_field(line, "package")) {
            if (!name.empty())
                fail(source, line_number,
                     "a second field Package; an empty line is missing before it");
            name = value_of(line);
            if (!is_package_name(name))
                fail(source, line_number, quoted(name) + " is not the name of a package");
        } else if (detail::is_field(line, "architecture")) {
            architecture = value_of(line);
        } else if (detail::is_field(line, "version")) {
            version = value_of(line);
        }
    }
    finish(all.size());
    if (list.packages_.empty()) throw bad_package_list(std::string(source) + ": no packages in it");
    return list;
}

package_list package_list::read_file(const std::string& path) {
    const auto refuse = [&path](int error) {
        throw bad_package_list(path +
                               ": cannot be read: " + std::generic_category().message(error));
    };
    std::FILE* const file = std::fopen(path.c_str(), "rbe");
    if (file == nullptr) refuse(errno);
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> closed_at_the_end(file, &std::fclose);
    std::string text;
    append_all(text, file);
    if (std::ferror(file) != 0) refuse(errno); // a directory is opened, and fails here
    return parse(std::move(text), path);
}

package_list package_list::read_apt() {
    constexpr const char* command = "LC_ALL=C apt-cache dumpavail";
    std::string text = output_of(command);
    if (detail::trimmed(text).empty())
        throw std::runtime_error(
            "apt-cache dumpavail printed nothing: there are no package lists here; "
            "'apt-get update' fetches them");
    return parse(std::move(text), "apt-cache dumpavail");
}

std::vector<std::string> installed_packages() {
    const std::string text =
        output_of("LC_ALL=C dpkg-query -W -f '${db:Status-Status} ${Package}\\n'");
    constexpr std::string_view installed = "installed ";
    std::vector<std::string> names;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view line = detail::take_line(text, at);
        // Others were removed and left their configuration behind.
        if (line.starts_with(installed)) names.emplace_back(line.substr(installed.size()));
    }
    std::ranges::sort(names); // a library installed for two architectures comes twice
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

package_names::package_names(const package_list& list) {
    const std::span<const package> packages = list.packages();
    std::size_t key_bytes = 0;
    std::unordered_map<std::string_view, std::uint32_t> known; // names, then virtual names
    known.reserve(2 * packages.size());
    for (std::uint32_t id = 0; id < packages.size(); ++id) {
        key_bytes += packages[id].key.size();
        known.try_emplace(packages[id].name, id); // the first keeps the name
    }

    // Most virtual names are depended on by no package (the Rust crates alone provide 100
    // thousand).
    std::unordered_set<std::string_view> wanted;
    for (const package& p : packages)
        for_each_dependency(p.stanza, [&](std::string_view name) {
            if (!known.contains(name)) wanted.insert(name);
        });
    std::vector<std::pair<std::string_view, std::uint32_t>> provided;
    std::size_t provided_bytes = 0;
    for (std::uint32_t id = 0; id < packages.size(); ++id) {
        const auto provide = [&](std::string_view name) {
            if (!wanted.contains(name) || !known.try_emplace(name, id).second) return;
            provided.emplace_back(name, id);
            provided_bytes += name.size();
        };
        detail::for_each_field(
            packages[id].stanza, "provides", "provides",
            [&](std::string_view value) { detail::for_each_clause(value, provide); });
    }

    if (key_bytes + provided_bytes > std::numeric_limits<std::uint32_t>::max())
        throw std::length_error("package names of more than 4 GiB");
    text_.reserve(key_bytes + provided_bytes);
    key_begins_.reserve(packages.size() + 1);
    slots_.assign(std::bit_ceil(2 * (packages.size() + provided.size())), 0);
    entries_.reserve(packages.size() + provided.size());
    for (std::uint32_t id = 0; id < packages.size(); ++id) {
        const auto begin = static_cast<std::uint32_t>(text_.size());
        key_begins_.push_back(begin);
        text_ += packages[id].key; // begins with the name
        if (packages[id].key == packages[id].name) add(begin, packages[id].name.size(), id);
    }
    key_begins_.push_back(static_cast<std::uint32_t>(text_.size()));
    for (const auto& [name, id] : provided) {
        const auto begin = static_cast<std::uint32_t>(text_.size());
        text_ += name;
        add(begin, name.size(), id);
    }
}

std::size_t package_names::slot_of(std::string_view name) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = std::hash<std::string_view>{}(name)&mask;
    while (slots_[slot] != 0 && name_of(entries_[slots_[slot] - 1]) != name)
        slot = (slot + 1) & mask;
    return slot;
}

void package_names::add(std::uint32_t begin, std::size_t length, std::uint32_t id) {
    const entry e{begin, static_cast<std::uint32_t>(length), id};
    const std::size_t slot = slot_of(name_of(e));
    entries_.push_back(e);
    slots_[slot] = static_cast<std::uint32_t>(entries_.size());
}

std::optional<std::uint32_t> package_names::find(std::string_view name) const noexcept {
    const std::uint32_t found = slots_[slot_of(name)];
    if (found == 0) return std::nullopt;
    return entries_[found - 1].id;
}

std::vector<std::uint32_t> package_names::find_all(std::span<const std::string> names) const {
    std::vector<std::uint32_t> ids;
    for (const std::string& name : names)
        if (const std::optional<std::uint32_t> id = find(name)) ids.push_back(*id);
    return ids;
}

std::size_t package_names::bytes() const noexcept {
    return text_.capacity() + key_begins_.capacity() * sizeof(std::uint32_t) +
           entries_.capacity() * sizeof(entry) + slots_.capacity() * sizeof(std::uint32_t);
}

} // namespace workload
