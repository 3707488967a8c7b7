// SPDX-License-Identifier: MIT
#include "tools/workload/debian_packages.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using workload::bad_package_list;
using workload::dependency_walk;
using workload::installed_packages;
using workload::package_list;
using workload::package_names;
using workload::walked;

constexpr const char* sample = "Package: editor\n"
                               "Version: 2:1.0-1\n"
                               "Architecture: amd64\n"
                               "Pre-Depends: libc (>= 2.36)\n"
                               "Depends: libtext (>= 1~), libterm:any [amd64] <!nocheck>,\n"
                               " spell-checker | dictionary, mail-transport-agent\n"
                               "Description: edits\n"
                               " Depends: this is text, and no field\n"
                               "\n"
                               "Package: libc\n"
                               "Version: 2.36\n"
                               "Architecture: amd64\n"
                               "\n"
                               "\n"
                               "Package: libtext\n"
                               "Version: 1.0\n"
                               "Architecture: all\n"
                               "depends: libc,libterm (>= 3) , nowhere\n"
                               "\n"
                               "Package: libterm\n"
                               "Version: 3\n"
                               "Architecture: amd64\n"
                               "Depends: libtext, libc (>= 2) | libc-other,\n"
                               "Provides: terminal\n"
                               "\n"
                               "Package: small-mailer\n"
                               "Version: 1\n"
                               "Architecture: amd64\n"
                               "Provides: something, mail-transport-agent (= 1), unwanted\n"
                               "Depends: libc\n"
                               "\n"
                               "Package: other-mailer\n"
                               "Version: 1\n"
                               "Architecture: amd64\n"
                               "Provides: mail-transport-agent\n"
                               "\n"
                               "Package: unasked\n"
                               "Version: 1\n"
                               "Architecture: amd64";

std::vector<std::string> keys_of(const package_list& list) {
    std::vector<std::string> keys;
    for (const auto& p : list.packages()) keys.emplace_back(p.key);
    return keys;
}

std::vector<std::string> dependencies_of(std::string_view stanza) {
    std::vector<std::string> names;
    workload::for_each_dependency(stanza, [&](std::string_view name) { names.emplace_back(name); });
    return names;
}

// A store that is a map.
struct store {
    std::map<std::string, std::string, std::less<>> records;

    explicit store(const package_list& list) {
        for (const auto& p : list.packages()) records.emplace(p.key, p.stanza);
    }
    auto reader() const {
        return [this](std::string_view key, auto&& use) {
            const auto at = records.find(key);
            if (at == records.end()) return false;
            use(std::string_view(at->second));
            return true;
        };
    }
};

std::string what_is_wrong(const std::string& text) {
    try {
        (void)package_list::parse(text, "the text");
    } catch (const bad_package_list& error) {
        return error.what();
    }
    return "nothing";
}

TEST(PackageList, StanzasAreKeptToTheByte) {
    const package_list list = package_list::parse(sample, "sample");
    EXPECT_EQ(keys_of(list), (std::vector<std::string>{"editor", "libc", "libtext", "libterm",
                                                       "small-mailer", "other-mailer", "unasked"}));
    EXPECT_EQ(list.packages()[1].stanza, "Package: libc\nVersion: 2.36\nArchitecture: amd64\n");
    EXPECT_EQ(list.packages()[6].stanza, "Package: unasked\nVersion: 1\nArchitecture: amd64");
    EXPECT_EQ(list.repeated(), 0U);
}

TEST(PackageList, MayBeMoved) {
    package_list list =
        package_list::parse("Package:a\nVersion:1", "short enough for a string's own bytes");
    const package_list moved = std::move(list);
    EXPECT_EQ(moved.packages()[0].stanza, "Package:a\nVersion:1");
    EXPECT_EQ(moved.packages()[0].key, "a");
}

// libc:i386 beside libc: what depends on libc means the first.
TEST(PackageList, NamesThatRepeatAreToldApart) {
    const std::string stanzas[] = {
        "Package: x\nArchitecture: amd64\nVersion: 1\n",
        "Package: x\nArchitecture: i386\nVersion: 1\n",
        "Architecture: i386\nVersion: 2\nPackage: x\n",
        "Package: y\n",
        "Package: x\nVersion: 3\nArchitecture: i386\nDepends: y\n",
        "Package: x\nVersion: 2\nArchitecture: i386\n",
        "Package: y\n",
        "Package: y\n",
    };
    std::string text;
    for (const std::string& s : stanzas) text += s + '\n';
    const package_list list = package_list::parse(text, "sample");
    EXPECT_EQ(keys_of(list),
              (std::vector<std::string>{"x", "x:i386", "x:i386=2", "y", "x:i386=3", "y:", "y:="}));
    EXPECT_EQ(list.repeated(), 1U);
    const package_names names(list);
    EXPECT_EQ(names.find("x"), 0U);
    EXPECT_EQ(names.find("y"), 3U);
    EXPECT_EQ(names.key(4), "x:i386=3");
    EXPECT_FALSE(names.find("x:i386"));
}

TEST(PackageList, WhatIsNoPackageIndexIsRefusedWithItsLine) {
    EXPECT_EQ(what_is_wrong(""), "the text: no packages in it");
    EXPECT_EQ(what_is_wrong("\n\n\n"), "the text: no packages in it");
    EXPECT_EQ(what_is_wrong("Package: a\n\nVersion: 1\n\nPackage: b\n"),
              "the text, line 3: a stanza without the field Package");
    EXPECT_EQ(
        what_is_wrong("Package: a\nno field\n"),
        "the text, line 2: 'no field' is neither 'Field: value' nor the continuation of a field");
    EXPECT_EQ(what_is_wrong(": a\n"),
              "the text, line 1: ': a' is neither 'Field: value' nor the continuation of a field");
    EXPECT_EQ(what_is_wrong("Package: a\n\n b\n"),
              "the text, line 3: a continuation line without a field before it");
    EXPECT_EQ(what_is_wrong("Package: a\nPackage: b\n"),
              "the text, line 2: a second field Package; an empty line is missing before it");
    EXPECT_EQ(what_is_wrong("Package:\n"), "the text, line 1: '' is not the name of a package");
    EXPECT_EQ(what_is_wrong("Package: a b\n"),
              "the text, line 1: 'a b' is not the name of a package");
    EXPECT_NE(what_is_wrong("Package: " + std::string(1000, 'a')).find("is not the name"),
              std::string::npos);
    EXPECT_NE(
        what_is_wrong(std::string("\x1f\x8b\x08\0\0\xff: compressed", 17)).find("line 1: '?????"),
        std::string::npos);
    EXPECT_NE(what_is_wrong(std::string(10'000, 'x')).find("xxx...' is neither"),
              std::string::npos);
}

TEST(PackageList, FilesThatCannotBeReadAreNamed) {
    for (const char* path : {"/nonexistent/packages", "/"}) {
        try {
            (void)package_list::read_file(path);
            FAIL() << path;
        } catch (const bad_package_list& error) {
            EXPECT_EQ(std::string(error.what()).find(std::string(path) + ": cannot be read: "), 0U)
                << error.what();
        }
    }
}

TEST(PackageList, IsReadFromAFile) {
    const std::string path = ::testing::TempDir() + "packages_" + std::to_string(std::rand());
    std::FILE* file = std::fopen(path.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::fputs(sample, file);
    std::fclose(file);
    EXPECT_EQ(keys_of(package_list::read_file(path)),
              keys_of(package_list::parse(sample, "the same")));
    std::remove(path.c_str());
}

// No input crashes or is misread: lines come back, or an error with its source.
RC_GTEST_PROP(PackageList, AnyTextIsParsedOrRefused, ()) {
    const auto lines = *rc::gen::container<std::vector<std::string>>(
        rc::gen::weightedElement<std::string>({{20, "\nPackage: a"},
                                               {20, "\nPackage: b"},
                                               {20, "\npackage:c"},
                                               {10, "Version: 1"},
                                               {20, "Depends: a | b, c (>= 1),,"},
                                               {20, "Pre-Depends: d"},
                                               {20, " more, b"},
                                               {9, ""},
                                               {20, "Provides: d, e"},
                                               {5, "Depends:"},
                                               {1, "\t"},
                                               {1, "junk"},
                                               {1, ":"},
                                               {1, "Package:"}}));
    std::string text = "Package: z\n";
    for (const std::string& line : lines) text += line + '\n';
    try {
        const package_list list = package_list::parse(text, "generated");
        std::set<std::string_view> keys;
        for (const auto& p : list.packages()) {
            RC_ASSERT(keys.insert(p.key).second);
            RC_ASSERT(text.find(p.stanza) != std::string::npos);
        }
        const package_names names(list);
        const store records(list);
        dependency_walk walk(names);
        for (std::uint32_t root = 0; root < names.size(); ++root) {
            RC_ASSERT(names.key(root) == list.packages()[root].key);
            const walked result = walk(root, records.reader(), [](auto, auto) {});
            RC_ASSERT(result.stanzas >= 1 && result.stanzas <= names.size());
            RC_ASSERT(result.not_stored == 0U);
        }
    } catch (const bad_package_list& error) {
        RC_ASSERT(std::string_view(error.what()).starts_with("generated"));
        RC_TAG("refused");
    }
}

TEST(Dependencies, AreTheFirstAlternativesInTheOrderOfTheText) {
    EXPECT_EQ(dependencies_of("Package: p\nPre-Depends: dpkg (>= 1.15.6~)\n"
                              "Depends: a (>= 1) | b, c:any, d[amd64], e<!x>,f|g,\n h\n\ti (= 2)\n"
                              "Suggests: z\nDEPENDS: k\n"),
              (std::vector<std::string>{"dpkg", "a", "c", "d", "e", "f", "h", "k"}));
    EXPECT_EQ(dependencies_of("Depends: "), std::vector<std::string>{});
    EXPECT_EQ(dependencies_of("Depends:\n a,\n b"), (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(dependencies_of(""), std::vector<std::string>{});
    EXPECT_EQ(dependencies_of("Dependsx: a\nDepend: b\n Depends: c\nDepends\n"),
              std::vector<std::string>{});
}

TEST(PackageNames, VirtualNamesMeanTheFirstProvider) {
    const package_list list = package_list::parse(sample, "sample");
    const package_names names(list);
    ASSERT_EQ(names.size(), 7U);
    EXPECT_EQ(names.key(*names.find("mail-transport-agent")), "small-mailer");
    EXPECT_EQ(names.key(*names.find("libterm")), "libterm");
    EXPECT_FALSE(names.find("nowhere"));
    EXPECT_FALSE(names.find("unwanted")); // provided, but no package depends on it
    EXPECT_FALSE(names.find(""));
    const std::vector<std::string> asked{"nowhere", "libc", "unasked", "libc"};
    EXPECT_EQ(names.find_all(asked), (std::vector<std::uint32_t>{1, 6, 1}));
    EXPECT_GT(names.bytes(), 7 * sizeof(std::uint32_t));
}

// editor -> libc, libtext, libterm, (spell-checker: nothing is), small-mailer.
TEST(DependencyWalk, ReadsTheClosureOfARootBreadthFirst) {
    const package_list list = package_list::parse(sample, "sample");
    const package_names names(list);
    const store records(list);
    dependency_walk walk(names);
    for (int round = 0; round < 3; ++round) {
        std::vector<std::string> order;
        std::size_t bytes = 0;
        const walked result =
            walk(0, records.reader(), [&](std::string_view key, std::string_view stanza) {
                EXPECT_EQ(stanza, records.records.find(key)->second);
                order.emplace_back(key);
                bytes += stanza.size();
            });
        EXPECT_EQ(order, (std::vector<std::string>{"editor", "libc", "libtext", "libterm",
                                                   "small-mailer"}));
        // skipped: spell-checker, and libtext's nowhere
        EXPECT_EQ(result, (walked{.stanzas = 5, .bytes = bytes, .skipped = 2, .not_stored = 0}));
    }
}

TEST(DependencyWalk, TheStoreSaysWhatIsReadNext) {
    const package_list list = package_list::parse(sample, "sample");
    const package_names names(list);
    store records(list);
    records.records["editor"] = "Package: editor\nDepends: unasked\n";
    dependency_walk walk(names);
    EXPECT_EQ(walk(0, records.reader(), [](auto, auto) {}).stanzas, 2U);
    records.records.erase("unasked");
    const walked result = walk(0, records.reader(), [](auto, auto) {});
    EXPECT_EQ(result.stanzas, 1U);
    EXPECT_EQ(result.not_stored, 1U);
}

// The real index of this machine, if apt has lists: prints what the demo will find in it.
TEST(RealPackages, OfThisMachine) {
    std::vector<std::string> installed;
    std::optional<package_list> list;
    try {
        installed = installed_packages();
        list = package_list::read_apt();
    } catch (const std::runtime_error& error) {
        GTEST_SKIP() << error.what();
    }
    const package_names names(*list);
    const std::vector<std::uint32_t> roots = names.find_all(installed);
    if (roots.empty()) GTEST_SKIP() << "the lists know none of the installed packages";

    // Read straight from the list.
    const auto get = [&](std::string_view key, auto&& use) {
        const auto id = names.find(key);
        if (!id) return false;
        use(list->packages()[*id].stanza);
        return true;
    };
    dependency_walk walk(names);
    std::map<std::string, std::uint64_t> reads;
    std::uint64_t steps = 0, longest_walk = 0, skipped = 0;
    for (const std::uint32_t root : roots) {
        const walked result = walk(root, get, [&](std::string_view key, std::string_view stanza) {
            EXPECT_NE(stanza.find("Package: "), std::string_view::npos);
            ++reads[std::string(key)];
        });
        EXPECT_EQ(result.not_stored, 0U);
        steps += result.stanzas;
        longest_walk = std::max<std::uint64_t>(longest_walk, result.stanzas);
        skipped += result.skipped;
    }
    EXPECT_GE(reads.size(), roots.size());
    EXPECT_LE(reads.size(), names.size());

    std::uint64_t bytes = 0, key_bytes = 0, longest = 0, reached_bytes = 0;
    for (const auto& p : list->packages()) {
        bytes += p.stanza.size();
        key_bytes += p.key.size();
        longest = std::max<std::uint64_t>(longest, p.stanza.size());
        if (reads.contains(std::string(p.key))) reached_bytes += p.stanza.size();
    }
    const auto most = std::ranges::max_element(reads, {}, [](const auto& r) { return r.second; });
    std::printf("%zu stanzas, %.1f MB (longest %llu bytes), keys %.1f MB, %zu repeated\n"
                "%zu installed, %zu of them roots; reached: %zu stanzas, %.2f MB\n"
                "walks: %.0f stanzas on average, at most %llu; read most: %s, by %.0f %% of roots; "
                "%llu clauses skipped\n"
                "names: %.1f MB\n",
                list->packages().size(), static_cast<double>(bytes) / 1e6,
                static_cast<unsigned long long>(longest), static_cast<double>(key_bytes) / 1e6,
                list->repeated(), installed.size(), roots.size(), reads.size(),
                static_cast<double>(reached_bytes) / 1e6,
                static_cast<double>(steps) / static_cast<double>(roots.size()),
                static_cast<unsigned long long>(longest_walk), most->first.c_str(),
                100.0 * static_cast<double>(most->second) / static_cast<double>(roots.size()),
                static_cast<unsigned long long>(skipped), static_cast<double>(names.bytes()) / 1e6);
}

} // namespace
