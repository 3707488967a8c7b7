// SPDX-License-Identifier: MIT
//
// The front end over one translation unit, for its two users: the plugin, which lets clang make
// code of it, and the rewriter. Each declaration is looked at, and annotated, as soon as it is
// complete; when all of the unit is known it is checked.
#pragma once

#include "checks.hpp"
#include "marked_types.hpp"
#include "outside_marks.hpp"
#include "report.hpp"
#include "visibility.hpp"

#include "clang/AST/ASTConsumer.h"
#include "clang/Frontend/CompilerInstance.h"
#include "llvm/ADT/SetVector.h"

namespace obase::frontend {

class analysis : public clang::ASTConsumer {
  public:
    analysis(clang::CompilerInstance& compiler, outside_marks marks);

    void Initialize(clang::ASTContext& ast) override;
    void HandleTagDeclDefinition(clang::TagDecl* tag) override;
    bool HandleTopLevelDecl(clang::DeclGroupRef group) override;
    void HandleTranslationUnit(clang::ASTContext& ast) final;

  protected:
    // The unit was checked. Not called for a program that clang itself refuses.
    virtual void checked(unit& whole) = 0;

    clang::CompilerInstance& compiler_;
    outside_marks marks_;
    report says_;

  private:
    bool compiles_tree() const;
    void mark_destructors();

    marked_types types_;
    visibility roles_;
    // With marked fields, and without a destructor so far.
    llvm::SetVector<const clang::CXXRecordDecl*> undestroyed_;
};

} // namespace obase::frontend
