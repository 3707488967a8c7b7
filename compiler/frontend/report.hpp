// SPDX-License-Identifier: MIT
//
// How the front end tells what it refuses: an error with the name of the check in brackets, and a
// note that says what to do instead. docs/compiler.md has a row for each name.
#pragma once

#include "clang/Basic/Diagnostic.h"
#include "clang/Basic/SourceLocation.h"

#include <set>
#include <string>
#include <utility>

namespace obase::frontend {

class report {
  public:
    explicit report(clang::DiagnosticsEngine& diagnostics);

    // Each pair of place and check is told once: templates are looked at once per instantiation.
    // False if it was told before.
    bool refuse(clang::SourceLocation where, llvm::StringRef check, const std::string& what,
                const std::string& advice);
    bool warn(clang::SourceLocation where, llvm::StringRef check, const std::string& what,
              const std::string& advice);
    void note(clang::SourceLocation where, const std::string& text);

  private:
    bool tell(unsigned id, clang::SourceLocation where, llvm::StringRef check,
              const std::string& what, const std::string& advice);

    clang::DiagnosticsEngine& diagnostics_;
    unsigned error_;
    unsigned warning_;
    unsigned note_;
    std::set<std::pair<clang::SourceLocation, std::string>> told_;
};

} // namespace obase::frontend
