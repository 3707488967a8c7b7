// SPDX-License-Identifier: MIT
#include "visibility_file.hpp"

#include "compiler/report_path.hpp"

#include "clang/AST/Mangle.h"
#include "clang/AST/PrettyPrinter.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace obase::frontend {

namespace {

std::string place(unit& in, clang::SourceLocation where) {
    const auto seen = in.ast.getSourceManager().getPresumedLoc(where);
    if (seen.isInvalid()) return "?";
    return std::string(seen.getFilename()) + ":" + std::to_string(seen.getLine());
}

// list::insert(int)
std::string signature(unit& in, const clang::FunctionDecl* function) {
    std::string text;
    llvm::raw_string_ostream out(text);
    clang::PrintingPolicy policy(in.ast.getLangOpts());
    policy.SuppressUnwrittenScope = true;
    function->getNameForDiagnostic(out, policy, /*Qualified=*/true);
    out << '(';
    llvm::interleave(
        function->parameters(), out,
        [&](const clang::ParmVarDecl* parameter) { parameter->getType().print(out, policy); },
        ", ");
    out << ')';
    return text;
}

std::string symbols(clang::ASTNameGenerator& names, const clang::FunctionDecl* function) {
    if (llvm::isa<clang::CXXConstructorDecl, clang::CXXDestructorDecl>(function))
        return llvm::join(names.getAllManglings(function), ",");
    return names.getName(function);
}

void write(unit& in, llvm::StringRef source, const outside_marks& outside, llvm::raw_ostream& out) {
    out << "# obase visibility, format 1\n";
    out << "unit\t" << source << '\n';
    for (const auto* mark : in.types.marks()) {
        out << "mark\t" << mark->getQualifiedNameAsString() << '\t'
            << mark->getType().getAsString(in.ast.getPrintingPolicy()) << '\t'
            << place(in, mark->getLocation()) << '\t'
            << (outside.names_field(mark) ? "marks file" : "source") << '\n';
        const clang::QualType to = marked_types::pointee(mark);
        if (to.isNull()) continue;
        if (to->isVoidType() || to->isIncompleteType())
            out << "trust\t" << mark->getQualifiedNameAsString() << "\tobjects of type "
                << to.getAsString(in.ast.getPrintingPolicy()) << " can be moved by their bytes\n";
    }
    clang::ASTNameGenerator names(in.ast);
    for (const auto& [function, made] : in.roles.all()) {
        if (made.is == role::none) continue;
        out << (made.is == role::entry ? "entry\t" : "internal\t") << signature(in, function)
            << '\t' << symbols(names, function) << '\t' << place(in, function->getLocation())
            << '\t' << made.why << '\n';
    }
}

} // namespace

std::string write_visibility_file(unit& in, llvm::StringRef path, llvm::StringRef source,
                                  const outside_marks& outside) {
    return write_report(path, source, "visibility",
                        [&](llvm::raw_ostream& out) { write(in, source, outside, out); });
}

} // namespace obase::frontend
