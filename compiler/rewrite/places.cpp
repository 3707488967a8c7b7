// SPDX-License-Identifier: MIT
#include "places.hpp"

#include "clang/Lex/Lexer.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <utility>

namespace obase::rewrite {

places::places(const clang::ASTContext& ast, edits& to, std::string root)
    : ast_(ast), sources_(ast.getSourceManager()), to_(to), root_(std::move(root)) {}

std::string places::path_of(clang::FileID file) {
    const auto known = known_.find(file);
    if (known != known_.end()) return known->second;
    std::string& path = known_[file];
    const auto entry = sources_.getFileEntryRefForID(file);
    if (!entry) return path;
    const clang::SourceLocation begin = sources_.getLocForStartOfFile(file);
    if (sources_.isInSystemHeader(begin)) return path;
    llvm::SmallString<256> real;
    if (llvm::sys::fs::real_path(entry->getName(), real)) return path;
    llvm::StringRef below = real;
    if (!below.consume_front(root_) || !below.starts_with("/")) return path;
    path = real.str().str();
    to_.reads(path, sources_.getBufferData(file));
    return path;
}

void places::read_all() {
    for (auto at = sources_.fileinfo_begin(); at != sources_.fileinfo_end(); ++at) {
        const clang::FileID file = sources_.translateFile(at->first);
        if (file.isValid()) (void)path_of(file);
    }
}

std::optional<place> places::of(clang::SourceRange tokens) {
    if (tokens.isInvalid()) return std::nullopt;
    const clang::CharSourceRange written = clang::Lexer::makeFileCharRange(
        clang::CharSourceRange::getTokenRange(tokens), sources_, ast_.getLangOpts());
    if (written.isInvalid()) return std::nullopt;
    const auto [file, begin] = sources_.getDecomposedLoc(written.getBegin());
    const auto [end_file, end] = sources_.getDecomposedLoc(written.getEnd());
    std::string path = path_of(file);
    if (file != end_file || path.empty()) return std::nullopt;
    return place{std::move(path), begin, end};
}

bool places::may_change(clang::SourceLocation where) {
    return where.isValid() && !path_of(sources_.getFileID(sources_.getExpansionLoc(where))).empty();
}

llvm::StringRef places::file_text(const place& at) const { return to_.files().at(at.path); }

llvm::StringRef places::text(const place& at) const {
    return file_text(at).slice(at.begin, at.end);
}

} // namespace obase::rewrite
