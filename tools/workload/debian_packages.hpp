// SPDX-License-Identifier: MIT
//
// The package index of a Debian system as a load: real text of real, varying size, and requests with
// the skew that dependencies have.
//
// What it is, in three parts, because they live for different times:
//   package_list     the parsed output of `apt-cache dumpavail`, or of a file like it. Needed while a
//                    store is filled, 50 MB or so; destroy it then.
//   package_names    which name means which package, virtual ones included. Small, and stays.
//   dependency_walk  one request: reads a package and all that it needs, breadth first, from whatever
//                    store it is given. It knows no dependency beforehand: the text that the store
//                    returns says what is read next.
//
// Records: key = the name; value = the whole stanza without the empty line behind it. A name that
// repeats (other architectures, other versions) keeps its plain form for the first stanza; later ones
// are called name:arch or, if that is taken too, name:arch=version. Dependencies mean the first.
//
//     std::optional<workload::package_list> list = workload::package_list::read_apt();
//     for (const workload::package& p : list->packages()) store.put(p.key, p.stanza);
//     const workload::package_names names(*list);
//     list.reset();
//     const auto roots = names.find_all(workload::installed_packages());
//     workload::dependency_walk walk(names);
//     walk(roots[i],
//          [&](std::string_view key, auto&& use) { return store.get(key, use); },
//          [&](std::string_view key, std::string_view stanza) { ... });
//
// It does not say what apt would install. Of alternatives (`a | b`) the first is taken, of the
// packages that provide a virtual one the first of the list; versions, architectures and conflicts
// are not looked at.
//
// Threads: a package_list and package_names are not changed after construction; share them. A
// dependency_walk belongs to one thread.
// Cost (one core, Debian 12's 64k stanzas, 50 MB): reading a file and parsing it 0.2 s; names 0.2 s
// and 3.3 MB; a walk 0.6 us per stanza of its own, without the store.
// Source: Debian policy, chapters 5 (syntax) and 7 (relations between packages).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace workload {

// The text is no package index; what() names source, line and what is wrong there.
struct bad_package_list : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct package {
    std::string_view key;    // unique
    std::string_view name;   // the field Package
    std::string_view stanza; // the last line with its newline, if it has one
};

class package_list {
  public:
    // `source` is what error messages call the text. Throws bad_package_list, also when there is no
    // stanza in it.
    static package_list parse(std::string text, std::string_view source);
    // Throws bad_package_list too when the file cannot be read.
    static package_list read_file(const std::string& path);
    // Runs `apt-cache dumpavail`. Throws std::runtime_error if that fails or finds no packages.
    static package_list read_apt();

    std::span<const package> packages() const noexcept { return packages_; }
    // Stanzas that said again what another had said: same name, architecture and version.
    std::size_t repeated() const noexcept { return repeated_; }
    // Of memory, about.
    std::size_t bytes() const noexcept {
        return text_->capacity() + packages_.capacity() * sizeof(package);
    }

  private:
    package_list() = default;

    std::unique_ptr<const std::string> text_; // views into it survive a move of the list
    std::deque<std::string> longer_keys_;     // name:arch, name:arch=version
    std::vector<package> packages_;
    std::size_t repeated_ = 0;
};

// Names of the packages installed here (`dpkg-query`), each once. Throws std::runtime_error.
std::vector<std::string> installed_packages();

namespace detail {

// The next line of `text` from `at` on, without its newline; moves `at` behind it.
inline std::string_view take_line(std::string_view text, std::size_t& at) noexcept {
    const char* const begin = text.data() + at;
    const void* const newline = std::memchr(begin, '\n', text.size() - at);
    const std::size_t length =
        newline != nullptr ? static_cast<std::size_t>(static_cast<const char*>(newline) - begin)
                           : text.size() - at;
    at += length + (newline != nullptr ? 1 : 0);
    return {begin, length};
}

inline bool continues_field(std::string_view line) noexcept {
    return !line.empty() && (line[0] == ' ' || line[0] == '\t');
}

// Field names are compared without regard to case (policy 5.1). `field` is in small letters.
inline bool is_field(std::string_view line, std::string_view field) noexcept {
    if (line.size() <= field.size() || line[field.size()] != ':') return false;
    for (std::size_t i = 0; i < field.size(); ++i) {
        const char c = line[i];
        if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != field[i]) return false;
    }
    return true;
}

inline constexpr std::string_view blanks = " \t\n\r";

inline std::string_view trimmed(std::string_view text) noexcept {
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// use(name) for each clause of a relation field: the first alternative's name, without version,
// architecture and the rest.
template <class Use>
void for_each_clause(std::string_view value, Use&& use) {
    while (!value.empty()) {
        const std::size_t comma = value.find(',');
        const std::string_view clause = trimmed(value.substr(0, comma));
        const std::string_view name = clause.substr(0, clause.find_first_of(" \t\n(:[<|"));
        if (!name.empty()) use(name);
        if (comma == std::string_view::npos) break;
        value.remove_prefix(comma + 1);
    }
}

// use(value) for each field of the stanza that is called `first` or `second`.
template <class Use>
void for_each_field(std::string_view stanza, std::string_view first, std::string_view second,
                    Use&& use) {
    for (std::size_t at = 0; at < stanza.size();) {
        const std::string_view line = take_line(stanza, at);
        const bool is_first = is_field(line, first);
        if (!is_first && !is_field(line, second)) continue;
        const std::size_t begin = (is_first ? first : second).size() + 1;
        const char* end = line.data() + line.size();
        while (at < stanza.size() && (stanza[at] == ' ' || stanza[at] == '\t')) {
            const std::string_view more = take_line(stanza, at);
            end = more.data() + more.size();
        }
        use(std::string_view(line.data() + begin,
                             static_cast<std::size_t>(end - line.data()) - begin));
    }
}

} // namespace detail

// use(name) for what a stanza's Pre-Depends and Depends ask for, in the order of the text; names may
// come more than once.
template <class Use>
void for_each_dependency(std::string_view stanza, Use&& use) {
    detail::for_each_field(stanza, "depends", "pre-depends",
                           [&](std::string_view value) { detail::for_each_clause(value, use); });
}

class package_names {
  public:
    explicit package_names(const package_list& list);

    // The number of the package a dependency on `name` means: the package of that name, otherwise the
    // first that provides it. Nothing if there is none. Virtual names that no package of the list
    // depends on are not known.
    std::optional<std::uint32_t> find(std::string_view name) const noexcept;
    // Numbers of those that are there, in the same order.
    std::vector<std::uint32_t> find_all(std::span<const std::string> names) const;

    // The key under which package number `id` is stored. Packages are numbered in list order.
    std::string_view key(std::uint32_t id) const noexcept {
        return {text_.data() + key_begins_[id], key_begins_[id + 1] - key_begins_[id]};
    }
    std::uint32_t size() const noexcept {
        return static_cast<std::uint32_t>(key_begins_.size() - 1);
    }
    // Memory that this takes.
    std::size_t bytes() const noexcept;

  private:
    struct entry {
        std::uint32_t begin; // of the name, in text_
        std::uint32_t length;
        std::uint32_t id;
    };
    std::string_view name_of(const entry& e) const noexcept {
        return {text_.data() + e.begin, e.length};
    }
    // The slot that holds `name`, or the empty one where it belongs.
    std::size_t slot_of(std::string_view name) const noexcept;
    void add(std::uint32_t begin, std::size_t length, std::uint32_t id);

    std::string text_;                      // all keys in list order, then virtual names
    std::vector<std::uint32_t> key_begins_; // in text_, and one more: the end of the last key
    std::vector<entry> entries_;
    std::vector<std::uint32_t> slots_; // open addressing: 0 = empty, otherwise entry + 1
};

// What one walk came across.
struct walked {
    std::uint32_t stanzas = 0;    // read, the root included
    std::uint64_t bytes = 0;      // in them
    std::uint32_t skipped = 0;    // dependencies on a name that nothing in the list is or provides
    std::uint32_t not_stored = 0; // packages that the store did not have

    bool operator==(const walked&) const = default;
};

class dependency_walk {
  public:
    // `names` outlives it. Takes 8 bytes per package.
    explicit dependency_walk(const package_names& names)
        : names_(names), visits_(names.size(), 0) {}

    // get(key, use) calls use(stanza) at most once, and returns whether it did; it may be any store.
    // sink(key, stanza) is called within it for each stanza, the root's first, each package once.
    template <class Get, class Sink>
    walked operator()(std::uint32_t root, Get&& get, Sink&& sink) {
        begin_visit();
        walked result;
        queue_.clear();
        visits_[root] = visit_;
        queue_.push_back(root);
        for (std::size_t next = 0; next < queue_.size(); ++next) {
            const std::string_view key = names_.key(queue_[next]);
            const bool found = get(key, [&](std::string_view stanza) {
                ++result.stanzas;
                result.bytes += stanza.size();
                sink(key, stanza);
                for_each_dependency(stanza, [&](std::string_view name) {
                    const std::optional<std::uint32_t> id = names_.find(name);
                    if (!id) {
                        ++result.skipped;
                    } else if (visits_[*id] != visit_) {
                        visits_[*id] = visit_;
                        queue_.push_back(*id);
                    }
                });
            });
            if (!found) ++result.not_stored;
        }
        return result;
    }

  private:
    void begin_visit() {
        if (++visit_ != 0) return;
        visits_.assign(visits_.size(), 0);
        visit_ = 1;
    }

    const package_names& names_;
    std::vector<std::uint32_t> visits_; // the walk that last reached a package
    std::vector<std::uint32_t> queue_;
    std::uint32_t visit_ = 0;
};

} // namespace workload
