// SPDX-License-Identifier: MIT
//
// The walk over a translation unit that the rewriter makes twice: instances of templates instead of
// their patterns, nothing of libraries, and with each node the nodes it stands in.
#pragma once

#include "compiler/frontend/marked_types.hpp"

#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/RecursiveASTVisitor.h"

#include <vector>

namespace obase::rewrite {

template <class Derived>
class walk : public clang::RecursiveASTVisitor<Derived> {
    using base = clang::RecursiveASTVisitor<Derived>;

  public:
    bool shouldVisitTemplateInstantiations() const { return true; }

    bool TraverseDecl(clang::Decl* declaration) {
        if (declaration == nullptr || frontend::of_standard_library(declaration)) return true;
        if (auto* function = llvm::dyn_cast<clang::FunctionDecl>(declaration)) {
            if (function->isDependentContext() || function->isImplicit() || function->isDefaulted())
                return true;
            functions_.push_back(function);
            const bool on = base::TraverseDecl(declaration);
            functions_.pop_back();
            return on;
        }
        if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(declaration))
            if (record->isDependentContext() && !record->isLambda()) return true;
        return base::TraverseDecl(declaration);
    }

    // With this signature the base class calls it for each statement, and keeps no queue.
    bool TraverseStmt(clang::Stmt* statement) {
        if (statement == nullptr) return true;
        this->getDerived().meet(statement);
        above_.push_back(statement);
        const bool on = base::TraverseStmt(statement);
        above_.pop_back();
        return on;
    }

    bool TraverseLambdaExpr(clang::LambdaExpr* closure) {
        auto* body = closure->getCallOperator();
        if (body == nullptr || body->isDependentContext()) {
            // A generic closure: its instances are functions of their own.
            if (auto* pattern = closure->getDependentCallOperator())
                for (auto* instance : pattern->specializations())
                    this->getDerived().TraverseDecl(instance);
            return true;
        }
        functions_.push_back(body);
        this->getDerived().meet_function(body);
        const bool on = base::TraverseLambdaExpr(closure);
        functions_.pop_back();
        return on;
    }

    bool TraverseConstructorInitializer(clang::CXXCtorInitializer* initializer) {
        ++initializers_;
        const bool on = base::TraverseConstructorInitializer(initializer);
        --initializers_;
        return on;
    }

    // What these are initialized with runs elsewhere: before a constructor's body, or in the
    // caller.
    bool TraverseFieldDecl(clang::FieldDecl* field) {
        functions_.push_back(nullptr);
        const bool on = base::TraverseFieldDecl(field);
        functions_.pop_back();
        return on;
    }
    bool TraverseParmVarDecl(clang::ParmVarDecl* parameter) {
        functions_.push_back(nullptr);
        const bool on = base::TraverseParmVarDecl(parameter);
        functions_.pop_back();
        return on;
    }

    bool VisitFunctionDecl(clang::FunctionDecl* function) {
        this->getDerived().meet_function(function);
        return true;
    }

  protected:
    // The statements around the one that is met, outermost first.
    const std::vector<const clang::Stmt*>& above() const { return above_; }
    // The one whose body the node is in; null for one that is in none.
    const clang::FunctionDecl* function() const {
        return functions_.empty() ? nullptr : functions_.back();
    }

    // In what a constructor does before its body.
    bool in_initializer() const { return initializers_ != 0; }

  private:
    unsigned initializers_ = 0;
    std::vector<const clang::Stmt*> above_;
    std::vector<const clang::FunctionDecl*> functions_;
};

} // namespace obase::rewrite
