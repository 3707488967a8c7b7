// SPDX-License-Identifier: MIT
//
// Changes of source files, kept by place and applied at the end. The same change may be asked for many
// times: a header is seen by many units, a template once per instance.
#pragma once

#include "clang/Basic/SourceLocation.h"

#include <map>
#include <set>
#include <string>
#include <tuple>

namespace obase::rewrite {

class edits {
  public:
    // The file's text as it is; to be said before any change of it.
    void reads(const std::string& path, llvm::StringRef text);

    // Puts `before` and `after` around [begin, end) of the file. What is in there may be changed, too.
    void wrap(const std::string& path, unsigned begin, unsigned end, const std::string& before,
              const std::string& after);
    // Puts `text` in the place of [begin, end), in which nothing else is changed.
    void replace(const std::string& path, unsigned begin, unsigned end, const std::string& text);

    // Behind [begin, end) its text comes once more, between `before` and `after`, with the changes in
    // it and with those of the copy alone.
    void copy(const std::string& path, unsigned begin, unsigned end, const std::string& before,
              const std::string& after);
    // In the copy of what begins at `of`.
    void replace_in_copy(const std::string& path, unsigned of, unsigned begin, unsigned end,
                         const std::string& text);

    bool changes(const std::string& path) const;
    const std::map<std::string, std::string>& files() const { return texts_; }

    // The file with its changes. Empty, and `conflict` the offset, where changes contradict each
    // other.
    std::string text_of(const std::string& path, unsigned& conflict) const;

  private:
    struct change {
        unsigned begin;
        unsigned end;
        bool replaces;
        std::string before; // or what replaces
        std::string after;
        bool operator<(const change& other) const { return key() < other.key(); }
        // By place; of two at one place the longer, which is around the other, first; what replaces
        // last.
        std::tuple<unsigned, unsigned, bool, const std::string&, const std::string&> key() const {
            return {begin, ~end, replaces, before, after};
        }
    };

    struct copied {
        unsigned end = 0;
        std::string before;
        std::string after;
        std::set<change> alone;
    };
    // [begin, end) with these changes. Empty, and `conflict` the offset, where they contradict.
    static std::string apply(const std::string& text, const std::set<change>& all, unsigned begin,
                             unsigned end, unsigned& conflict);

    std::map<std::string, std::string> texts_;
    std::map<std::string, std::set<change>> changes_;
    std::map<std::string, std::map<unsigned, copied>> copies_; // by begin
};

} // namespace obase::rewrite
