// SPDX-License-Identifier: MIT
#include "analysis.hpp"

#include "annotations.hpp"
#include "unit_visitor.hpp"

#include "clang/AST/DeclTemplate.h"
#include "clang/AST/ExprConcepts.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/FrontendOptions.h"
#include "llvm/ADT/STLExtras.h"

#include <utility>

namespace obase::frontend {

namespace {

using records = llvm::SetVector<const clang::CXXRecordDecl*>;

bool holds_marks(const clang::CXXRecordDecl* record, marked_types& types) {
    return types.held_mark(record->getTypeForDecl()->getCanonicalTypeInternal()) != nullptr;
}

// Finds the functions and variables within a top-level declaration, namespaces and classes included.
class definitions : public clang::RecursiveASTVisitor<definitions> {
  public:
    definitions(marked_types& types, visibility& roles, const outside_marks& outside,
                records& undestroyed, bool instances = false)
        : types_(types), roles_(roles), outside_(outside), undestroyed_(undestroyed),
          instances_(instances) {}

    // Those of templates, which the parser brings by themselves.
    bool shouldVisitTemplateInstantiations() const { return instances_; }

    bool TraverseDecl(clang::Decl* declaration) {
        if (declaration != nullptr && (of_standard_library(declaration) ||
                                       llvm::isa<clang::RequiresExprBodyDecl>(declaration)))
            return true;
        return RecursiveASTVisitor::TraverseDecl(declaration);
    }
    bool VisitRecordDecl(clang::RecordDecl* record) {
        types_.look_at(record);
        const auto* type = llvm::dyn_cast<clang::CXXRecordDecl>(record);
        if (type == nullptr || !type->isCompleteDefinition() || type->isDependentContext())
            return true;
        roles_.look_at(type);
        if (holds_marks(type, types_)) undestroyed_.insert(type);
        return true;
    }
    bool VisitFunctionDecl(clang::FunctionDecl* function) {
        // Declarations, too: callers in this unit must know.
        if (outside_.makes(function)) annotate(function, makes_text);
        if (const auto* destructor = llvm::dyn_cast<clang::CXXDestructorDecl>(function))
            if (!destructor->isDependentContext() && holds_marks(destructor->getParent(), types_))
                annotate(function, ends_slots_text);
        roles_.look_at(function);
        return true;
    }
    bool VisitVarDecl(clang::VarDecl* variable) {
        types_.look_at(variable);
        if (variable->isFileVarDecl()) roles_.look_at(variable);
        return true;
    }

  private:
    marked_types& types_;
    visibility& roles_;
    const outside_marks& outside_;
    records& undestroyed_;
    bool instances_;
};

} // namespace

analysis::analysis(clang::CompilerInstance& compiler, outside_marks marks)
    : compiler_(compiler), marks_(std::move(marks)), says_(compiler.getDiagnostics()),
      types_(marks_, says_), roles_(types_, marks_, says_) {
    // A destructor that adds nothing to its base's is no function of its own otherwise.
    compiler.getCodeGenOpts().CXXCtorDtorAliases = 0;
}

// As soon as a class is complete: what follows may use its fields.
void analysis::HandleTagDeclDefinition(clang::TagDecl* tag) {
    if (const auto* record = llvm::dyn_cast<clang::RecordDecl>(tag)) types_.look_at(record);
    if (const auto* type = llvm::dyn_cast<clang::CXXRecordDecl>(tag))
        if (!type->isDependentContext() && !of_standard_library(type)) {
            roles_.look_at(type);
            if (holds_marks(type, types_)) undestroyed_.insert(type);
        }
}

// Is the source one that clang has read already: a module's tree, to make its code, or a header's?
bool analysis::compiles_tree() const {
    return llvm::any_of(compiler_.getFrontendOpts().Inputs,
                        [](const clang::FrontendInputFile& input) {
                            return input.getKind().getFormat() == clang::InputKind::Precompiled;
                        });
}

// Declarations of a precompiled header come not from the parser but from its reader as it is
// needed, in any order. All of it is looked at before the text and before code is made of any of
// it, as if the header's text stood at the beginning.
void analysis::Initialize(clang::ASTContext& ast) {
    if (ast.getExternalSource() == nullptr || compiles_tree()) return;
    definitions look(types_, roles_, marks_, undestroyed_, /*instances=*/true);
    look.TraverseDecl(ast.getTranslationUnitDecl());
    mark_destructors();
}

// Implicit destructors are declared when the first function needs them, of which code may be made
// at once.
void analysis::mark_destructors() {
    undestroyed_.remove_if([](const clang::CXXRecordDecl* record) {
        auto* destructor = record->getDestructor();
        if (destructor == nullptr) return false;
        annotate(destructor, ends_slots_text);
        return true;
    });
}

// The code generator gets the same declarations after this, and may make code of them at once.
bool analysis::HandleTopLevelDecl(clang::DeclGroupRef group) {
    definitions look(types_, roles_, marks_, undestroyed_);
    for (auto* declaration : group) look.TraverseDecl(declaration);
    mark_destructors();
    return true;
}

void analysis::HandleTranslationUnit(clang::ASTContext& ast) {
    // The tree of a program that is wrong anyway may be incomplete.
    if (compiler_.getDiagnostics().hasErrorOccurred()) return;
    // Of a tree only what code is made of has been brought, and there is nothing else to be checked.
    unit whole{ast, types_, roles_, says_};
    mark_destructors();
    if (!compiles_tree()) {
        roles_.finish();
        check_unit(whole);
    }
    // Who imports a module does not see it as a whole, and its code is made of its tree.
    for (const auto* mark : types_.marks())
        if (compiles_tree() || mark->getOwningModule() != nullptr)
            says_.refuse(mark->getLocation(), "module",
                         "the marked field " + quoted(mark) +
                             " is part of a module, which cannot be compiled with obase",
                         "declare it in a header, which may be precompiled (-include-pch)");
    if (!compiles_tree()) checked(whole);
}

} // namespace obase::frontend
