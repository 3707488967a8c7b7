// SPDX-License-Identifier: MIT
//
// Copies that the compiler makes by itself: it copies the bytes of slots, or reads them one by one
// and writes them to places that are not registered, and the managed object has two owners.
#include "checks.hpp"

#include "clang/AST/DeclCXX.h"
#include "clang/AST/ExprCXX.h"

namespace obase::frontend {

namespace {

void refuse_copy(unit& in, const clang::RecordDecl* record, const clang::FieldDecl* mark,
                 clang::SourceLocation where, const char* how) {
    const bool c = !in.ast.getLangOpts().CPlusPlus;
    in.refuse_for(
        mark, where, "struct-copy",
        quoted(record) + " with the marked field " + quoted(mark) + " is " + how +
            " as a whole, so an object would have two owners",
        c ? "assign field by field, and set the source's marked fields to null"
          : "give the class a move constructor and a move assignment that take the pointer "
            "from the source (std::exchange), and delete the copying ones");
}

} // namespace

void check_construct(unit& in, const clang::CXXConstructExpr* construct) {
    const auto* constructor = construct->getConstructor();
    if (!constructor->isCopyOrMoveConstructor() || !constructor->isDefaulted()) return;
    const auto* record = constructor->getParent();
    if (const auto* mark = in.types.mark_copied_by_default(record, /*assignment=*/false))
        refuse_copy(in, record, mark, construct->getLocation(), "copied");
}

void check_call_of_assignment(unit& in, const clang::CallExpr* call) {
    const auto* method = llvm::dyn_cast_or_null<clang::CXXMethodDecl>(call->getDirectCallee());
    if (method == nullptr || !method->isDefaulted()) return;
    if (!method->isCopyAssignmentOperator() && !method->isMoveAssignmentOperator()) return;
    const auto* record = method->getParent();
    if (const auto* mark = in.types.mark_copied_by_default(record, /*assignment=*/true))
        refuse_copy(in, record, mark, call->getExprLoc(), "assigned");
}

// C: a struct as a value. In C++ a constructor or an operator does it.
void check_record_load(unit& in, const clang::ImplicitCastExpr* cast) {
    if (cast->getCastKind() != clang::CK_LValueToRValue || in.ast.getLangOpts().CPlusPlus) return;
    const auto* record = record_of(cast->getType());
    if (record == nullptr || cast->getType()->isAtomicType()) return;
    if (const auto* mark = in.types.held_mark(cast->getType()))
        refuse_copy(in, record, mark, cast->getExprLoc(), "copied");
}

} // namespace obase::frontend
