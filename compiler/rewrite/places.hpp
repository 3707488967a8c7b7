// SPDX-License-Identifier: MIT
//
// From clang's locations to places in the files that may be changed: those below the root that are no
// system headers. Code that a macro writes has no place, but what the program hands to a macro has.
#pragma once

#include "edits.hpp"

#include "clang/AST/ASTContext.h"
#include "clang/Basic/SourceManager.h"

#include <optional>
#include <string>

namespace obase::rewrite {

struct place {
    std::string path;
    unsigned begin;
    unsigned end;
};

class places {
  public:
    // `root` is absolute and without links.
    places(const clang::ASTContext& ast, edits& to, std::string root);

    // Where the tokens of the range are written; none if they are not in a file below the root, or
    // not in one piece.
    std::optional<place> of(clang::SourceRange tokens);
    // From the end of one to the begin of the other, in one file.
    std::optional<place> of_token(clang::SourceLocation token) { return of({token, token}); }

    // Is the declaration in a file that may be changed?
    bool may_change(clang::SourceLocation where);
    llvm::StringRef text(const place& at) const;
    llvm::StringRef file_text(const place& at) const;

    edits& change() { return to_; }
    // Notes the text of all files of the unit that may be changed.
    void read_all();
    // The file below the root, absolute, and notes its text; empty if it is no such file.
    std::string path_of(clang::FileID file);

  private:
    const clang::ASTContext& ast_;
    const clang::SourceManager& sources_;
    edits& to_;
    std::string root_;
    std::map<clang::FileID, std::string> known_;
};

} // namespace obase::rewrite
