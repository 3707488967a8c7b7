// SPDX-License-Identifier: MIT
#include "report.hpp"

namespace obase::frontend {

report::report(clang::DiagnosticsEngine& diagnostics)
    : diagnostics_(diagnostics),
      error_(diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error, "%0 [obase:%1]")),
      warning_(diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Warning, "%0 [obase:%1]")),
      note_(diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Note, "%0")) {}

bool report::tell(unsigned id, clang::SourceLocation where, llvm::StringRef check,
                  const std::string& what, const std::string& advice) {
    if (!told_.emplace(where, check.str()).second) return false;
    diagnostics_.Report(where, id) << what << check;
    if (!advice.empty()) note(where, advice);
    return true;
}

bool report::refuse(clang::SourceLocation where, llvm::StringRef check, const std::string& what,
                    const std::string& advice) {
    return tell(error_, where, check, what, advice);
}

bool report::warn(clang::SourceLocation where, llvm::StringRef check, const std::string& what,
                  const std::string& advice) {
    return tell(warning_, where, check, what, advice);
}

void report::note(clang::SourceLocation where, const std::string& text) {
    diagnostics_.Report(where, note_) << text;
}

} // namespace obase::frontend
