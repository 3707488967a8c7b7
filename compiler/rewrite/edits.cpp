// SPDX-License-Identifier: MIT
#include "edits.hpp"

#include <vector>

namespace obase::rewrite {

void edits::reads(const std::string& path, llvm::StringRef text) {
    texts_.emplace(path, text.str());
}

void edits::wrap(const std::string& path, unsigned begin, unsigned end, const std::string& before,
                 const std::string& after) {
    changes_[path].insert({begin, end, false, before, after});
}

void edits::replace(const std::string& path, unsigned begin, unsigned end,
                    const std::string& text) {
    changes_[path].insert({begin, end, true, text, {}});
}

bool edits::changes(const std::string& path) const { return changes_.count(path) != 0; }

std::string edits::text_of(const std::string& path, unsigned& conflict) const {
    const std::string& text = texts_.at(path);
    const auto found = changes_.find(path);
    if (found == changes_.end()) return text;
    std::string result;
    unsigned at = 0;
    // The wraps that are open, innermost last.
    std::vector<const change*> open;
    const auto close_until = [&](unsigned place) {
        while (!open.empty() && open.back()->end <= place) {
            result.append(text, at, open.back()->end - at);
            at = open.back()->end;
            result += open.back()->after;
            open.pop_back();
        }
    };
    for (const change& next : found->second) {
        close_until(next.begin);
        const bool overlaps = next.begin < at || (!open.empty() && next.end > open.back()->end);
        if (overlaps) {
            conflict = next.begin;
            return {};
        }
        result.append(text, at, next.begin - at);
        at = next.begin;
        result += next.before;
        if (next.replaces)
            at = next.end;
        else if (next.end == next.begin)
            result += next.after;
        else
            open.push_back(&next);
    }
    close_until(static_cast<unsigned>(text.size()));
    result.append(text, at, std::string::npos);
    return result;
}

} // namespace obase::rewrite
