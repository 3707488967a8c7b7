// SPDX-License-Identifier: MIT
#include "checks.hpp"

#include "clang/Basic/SourceManager.h"

namespace obase::frontend {

bool unit::in_library(clang::SourceLocation where) const {
    return ast.getSourceManager().isInSystemHeader(where);
}

bool unit::refuse_for(const clang::FieldDecl* mark, clang::SourceLocation where,
                      llvm::StringRef check, const std::string& what, const std::string& advice) {
    if (!in_library(where)) return says.refuse(where, check, what, advice);
    if (!says.refuse(mark->getParent()->getLocation(), check,
                     what + ", in a library's code that was instantiated for this type", advice))
        return false;
    says.note(where, "it happens here");
    return true;
}

const clang::FieldDecl* slot_named(const clang::Expr* expression, marked_types& types) {
    expression = expression->IgnoreParens();
    if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(expression)) {
        const auto* field = llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl());
        return field != nullptr && types.is_marked(field) ? field : nullptr;
    }
    if (const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(expression)) {
        const auto* array = element->getBase()->IgnoreParenImpCasts();
        // Not an element of what a marked field points to.
        if (array->getType()->isArrayType()) return slot_named(array, types);
    }
    return nullptr;
}

const clang::FieldDecl* slot_address(const clang::Expr* expression, marked_types& types) {
    expression = expression->IgnoreParenCasts();
    if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(expression))
        return op->getOpcode() == clang::UO_AddrOf ? slot_named(op->getSubExpr(), types) : nullptr;
    return expression->getType()->isArrayType() ? slot_named(expression, types) : nullptr;
}

} // namespace obase::frontend
