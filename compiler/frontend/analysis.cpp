// SPDX-License-Identifier: MIT
#include "analysis.hpp"

#include "annotations.hpp"
#include "unit_visitor.hpp"

#include "clang/AST/RecursiveASTVisitor.h"

#include <utility>

namespace obase::frontend {

namespace {

// Finds the functions and variables within a top-level declaration, namespaces and classes included.
class definitions : public clang::RecursiveASTVisitor<definitions> {
  public:
    definitions(marked_types& types, visibility& roles, const outside_marks& outside)
        : types_(types), roles_(roles), outside_(outside) {}

    bool TraverseDecl(clang::Decl* declaration) {
        if (declaration != nullptr && of_standard_library(declaration)) return true;
        return RecursiveASTVisitor::TraverseDecl(declaration);
    }
    bool VisitRecordDecl(clang::RecordDecl* record) {
        types_.look_at(record);
        return true;
    }
    bool VisitFunctionDecl(clang::FunctionDecl* function) {
        // Declarations, too: who calls it here must know.
        if (outside_.makes(function)) annotate(function, makes_text);
        roles_.look_at(function);
        return true;
    }
    bool VisitVarDecl(clang::VarDecl* variable) {
        if (variable->isFileVarDecl()) roles_.look_at(variable);
        return true;
    }

  private:
    marked_types& types_;
    visibility& roles_;
    const outside_marks& outside_;
};

} // namespace

analysis::analysis(clang::CompilerInstance& compiler, outside_marks marks)
    : compiler_(compiler), marks_(std::move(marks)), says_(compiler.getDiagnostics()),
      types_(marks_, says_), roles_(types_, marks_, says_) {}

// As soon as a class is complete: what follows may use its fields.
void analysis::HandleTagDeclDefinition(clang::TagDecl* tag) {
    if (const auto* record = llvm::dyn_cast<clang::RecordDecl>(tag)) types_.look_at(record);
    if (const auto* type = llvm::dyn_cast<clang::CXXRecordDecl>(tag))
        if (!type->isDependentContext() && !of_standard_library(type)) roles_.look_at(type);
}

// The code generator gets the same declarations after this, and may make code of them at once.
bool analysis::HandleTopLevelDecl(clang::DeclGroupRef group) {
    definitions look(types_, roles_, marks_);
    for (auto* declaration : group) look.TraverseDecl(declaration);
    return true;
}

void analysis::HandleTranslationUnit(clang::ASTContext& ast) {
    // The tree of a program that is wrong anyway may be incomplete.
    if (compiler_.getDiagnostics().hasErrorOccurred()) return;
    roles_.finish();
    unit whole{ast, types_, roles_, says_};
    check_unit(whole);
    checked(whole);
}

} // namespace obase::frontend
