// SPDX-License-Identifier: MIT
//
// Errors as clang's own: with file, line and column where the module has debug information or
// clang was told to track locations (obase-clang does), else with the place of the function.
#include "instrumentation.hpp"

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/LLVMContext.h>

namespace obase::passes {

namespace {

// Where the function itself is written that was inlined into others on the way here.
const llvm::DILocation* outermost(const llvm::DILocation* at) {
    while (at != nullptr && at->getInlinedAt() != nullptr) at = at->getInlinedAt();
    return at;
}

} // namespace

std::string place_of(const llvm::Instruction& where) {
    const llvm::DILocation* at = outermost(where.getDebugLoc().get());
    if (at == nullptr) return where.getFunction()->getName().str();
    return (at->getFilename() + ":" + llvm::Twine(at->getLine()) + ":" +
            llvm::Twine(at->getColumn()))
        .str();
}

void problems::refuse(const llvm::Instruction& where, const llvm::Twine& what) {
    const std::string text = what.str();
    if (!told_.insert(place_of(where) + " " + text).second) return;
    const llvm::DebugLoc location(outermost(where.getDebugLoc().get()));
    module_.getContext().diagnose(
        llvm::DiagnosticInfoUnsupported(*where.getFunction(), "obase: " + text,
                                        llvm::DiagnosticLocation(location), llvm::DS_Error));
}

void problems::warn(const llvm::Instruction& where, const llvm::Twine& what) {
    const std::string text = what.str();
    if (!warned_.insert(place_of(where) + " " + text).second) return;
    const llvm::DebugLoc location(outermost(where.getDebugLoc().get()));
    module_.getContext().diagnose(
        llvm::DiagnosticInfoUnsupported(*where.getFunction(), "obase: " + text,
                                        llvm::DiagnosticLocation(location), llvm::DS_Warning));
}

void problems::refuse(const llvm::Function& where, const llvm::Twine& what) {
    const std::string text = what.str();
    if (!told_.insert((where.getName() + " " + text).str()).second) return;
    const llvm::DiagnosticLocation at = where.getSubprogram() != nullptr
                                            ? llvm::DiagnosticLocation(where.getSubprogram())
                                            : llvm::DiagnosticLocation();
    module_.getContext().diagnose(
        llvm::DiagnosticInfoUnsupported(where, "obase: " + text, at, llvm::DS_Error));
}

void problems::refuse(const llvm::Twine& what) {
    const std::string text = what.str();
    if (told_.insert(text).second) module_.getContext().emitError("obase: " + text);
}

} // namespace obase::passes
