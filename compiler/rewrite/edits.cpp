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

void edits::copy(const std::string& path, unsigned begin, unsigned end, const std::string& before,
                 const std::string& after) {
    copied& made = copies_[path][begin];
    made.end = end;
    made.before = before;
    made.after = after;
}

void edits::replace_in_copy(const std::string& path, unsigned of, unsigned begin, unsigned end,
                            const std::string& text) {
    copies_[path][of].alone.insert({begin, end, true, text, {}});
}

bool edits::changes(const std::string& path) const {
    return changes_.count(path) != 0 || copies_.count(path) != 0;
}

std::string edits::text_of(const std::string& path, unsigned& conflict) const {
    const std::string& text = texts_.at(path);
    const auto found = changes_.find(path);
    const std::set<change> given = found != changes_.end() ? found->second : std::set<change>();
    std::set<change> all = given;
    if (const auto copies = copies_.find(path); copies != copies_.end())
        for (const auto& [begin, made] : copies->second) {
            std::set<change> inside = made.alone;
            for (const change& one : given)
                if (one.begin >= begin && one.begin < made.end && one.end <= made.end)
                    inside.insert(one);
            const std::string twin = apply(text, inside, begin, made.end, conflict);
            if (twin.empty()) return {};
            all.insert({made.end, made.end, false, made.before + twin + made.after, {}});
        }
    return apply(text, all, 0, static_cast<unsigned>(text.size()), conflict);
}

std::string edits::apply(const std::string& text, const std::set<change>& all, unsigned begin,
                         unsigned end, unsigned& conflict) {
    std::string result;
    unsigned at = begin;
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
    for (const change& next : all) {
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
    close_until(end);
    result.append(text, at, end - at);
    return result;
}

} // namespace obase::rewrite
