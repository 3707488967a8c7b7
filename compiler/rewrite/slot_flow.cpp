// SPDX-License-Identifier: MIT
#include "slot_flow.hpp"

#include "compiler/frontend/annotations.hpp"

#include "clang/AST/DeclCXX.h"
#include "clang/AST/ExprCXX.h"

#include <algorithm>
#include <utility>

namespace obase::rewrite {

namespace {

// The slot that a pointer or a reference may lead to.
bool can_carry(clang::QualType type) {
    if (!type->isPointerType() && !type->isReferenceType()) return false;
    return kind_of(type->getPointeeType()) != slot_kind::other;
}

bool is_null(const clang::Expr* value, const clang::ASTContext& ast) {
    return value->isNullPointerConstant(const_cast<clang::ASTContext&>(ast),
                                        clang::Expr::NPC_ValueDependentIsNotNull) !=
           clang::Expr::NPCK_NotNull;
}

} // namespace

slot_kind kind_of(clang::QualType type) {
    type = type.getCanonicalType();
    if (type->isPointerType()) return slot_kind::plain;
    const auto* record = type->getAsRecordDecl();
    const llvm::StringRef name = frontend::standard_name(record);
    if (name == "unique_ptr") return slot_kind::owner;
    if (name != "atomic") return slot_kind::other;
    const clang::QualType held = frontend::type_argument(record, 0);
    return !held.isNull() && held->isPointerType() ? slot_kind::atomic : slot_kind::other;
}

const clang::Expr* bare(const clang::Expr* expression) {
    for (;;) {
        expression = expression->IgnoreParens();
        const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(expression);
        if (cast != nullptr && (cast->getCastKind() == clang::CK_NoOp ||
                                cast->getCastKind() == clang::CK_UncheckedDerivedToBase ||
                                cast->getCastKind() == clang::CK_DerivedToBase))
            expression = cast->getSubExpr();
        else if (const auto* full = llvm::dyn_cast<clang::FullExpr>(expression))
            expression = full->getSubExpr();
        else if (const auto* temporary =
                     llvm::dyn_cast<clang::MaterializeTemporaryExpr>(expression))
            expression = temporary->getSubExpr();
        else if (const auto* bound = llvm::dyn_cast<clang::CXXBindTemporaryExpr>(expression))
            expression = bound->getSubExpr();
        else
            return expression;
    }
}

llvm::StringRef standard_callee(const clang::CallExpr* call) {
    const auto* callee = call->getDirectCallee();
    if (callee == nullptr || callee->getIdentifier() == nullptr || !callee->isInStdNamespace())
        return {};
    return callee->getName();
}

bool is_maker(const clang::FunctionDecl* function) {
    return llvm::any_of(function->redecls(), [](const clang::FunctionDecl* declaration) {
        return frontend::annotated(declaration, frontend::makes_text);
    });
}

bool gets_value(const clang::ParmVarDecl* parameter) {
    const auto* callee = llvm::dyn_cast<clang::FunctionDecl>(parameter->getDeclContext());
    const clang::QualType type = parameter->getType();
    if (!type->isReferenceType() || kind_of(type->getPointeeType()) != slot_kind::plain)
        return false;
    if (type->isRValueReferenceType() || type->getPointeeType().isConstQualified()) return true;
    const auto* pattern = callee == nullptr ? nullptr : callee->getTemplateInstantiationPattern();
    if (pattern == nullptr || pattern->getNumParams() == 0) return false;
    // A parameter pack stands for all that follow.
    const unsigned index =
        std::min(parameter->getFunctionScopeIndex(), pattern->getNumParams() - 1);
    clang::QualType as = pattern->getParamDecl(index)->getType();
    if (const auto* pack = as->getAs<clang::PackExpansionType>()) as = pack->getPattern();
    return as->isRValueReferenceType();
}

const clang::ValueDecl* slot_flow::key(const clang::ValueDecl* declaration) {
    if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(declaration))
        return function->getCanonicalDecl();
    if (const auto* parameter = llvm::dyn_cast<clang::ParmVarDecl>(declaration)) {
        // Each declaration of a function has parameters of its own.
        const auto* function =
            llvm::dyn_cast_or_null<clang::FunctionDecl>(parameter->getDeclContext());
        const unsigned index = parameter->getFunctionScopeIndex();
        if (function != nullptr && parameter->getFunctionScopeDepth() == 0 &&
            index < function->getCanonicalDecl()->getNumParams())
            return function->getCanonicalDecl()->getParamDecl(index);
    }
    return declaration;
}

void slot_flow::gives(const clang::ValueDecl* to, const clang::Expr* value,
                      const clang::FunctionDecl* in_function) {
    sources_[key(to)].push_back({value, in_function});
}

bool slot_flow::is_slot(const clang::Expr* expression) const {
    expression = bare(expression);
    if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(expression)) {
        const auto* field = llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl());
        return field != nullptr && in_.types.is_marked(field);
    }
    if (const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(expression)) {
        const auto* array = element->getBase()->IgnoreParenImpCasts();
        return array->getType()->isArrayType() ? is_slot(array)
                                               : is_slot_address(element->getBase());
    }
    if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(expression))
        return op->getOpcode() == clang::UO_Deref && is_slot_address(op->getSubExpr());
    if (const auto* either = llvm::dyn_cast<clang::ConditionalOperator>(expression))
        return expression->isGLValue() && is_slot(either->getTrueExpr()) &&
               is_slot(either->getFalseExpr());
    if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(expression))
        return name->getDecl()->getType()->isReferenceType() && carries(name->getDecl());
    if (const auto* call = llvm::dyn_cast<clang::CallExpr>(expression))
        return call->getDirectCallee() != nullptr && expression->isGLValue() &&
               carries(call->getDirectCallee());
    return false;
}

bool slot_flow::is_reached(const clang::Expr* slot) const {
    slot = bare(slot);
    if (const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(slot))
        return !element->getBase()->IgnoreParenImpCasts()->getType()->isArrayType();
    return llvm::isa<clang::UnaryOperator>(slot);
}

bool slot_flow::is_slot_address(const clang::Expr* expression) const {
    expression = bare(expression);
    if (const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(expression)) {
        if (cast->getCastKind() == clang::CK_ArrayToPointerDecay)
            return is_slot(cast->getSubExpr());
        if (cast->getCastKind() == clang::CK_LValueToRValue)
            return is_slot_address(cast->getSubExpr());
        return false;
    }
    if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(expression)) {
        if (op->getOpcode() == clang::UO_AddrOf) return is_slot(op->getSubExpr());
        return op->isIncrementDecrementOp() && is_slot_address(op->getSubExpr());
    }
    if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(expression)) {
        if (op->isAssignmentOp()) return is_slot_address(op->getLHS());
        return op->isAdditiveOp() && op->getType()->isPointerType() &&
               (is_slot_address(op->getLHS()) || is_slot_address(op->getRHS()));
    }
    if (const auto* either = llvm::dyn_cast<clang::ConditionalOperator>(expression))
        return is_slot_address(either->getTrueExpr()) && is_slot_address(either->getFalseExpr());
    if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(expression))
        return name->getDecl()->getType()->isPointerType() && carries(name->getDecl());
    if (const auto* call = llvm::dyn_cast<clang::CallExpr>(expression))
        return call->getDirectCallee() != nullptr && call->getType()->isPointerType() &&
               carries(call->getDirectCallee());
    return false;
}

void slot_flow::solve() {
    find_inside();
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [to, all] : sources_) {
            if (carriers_.contains(to)) continue;
            clang::QualType type = to->getType();
            if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(to))
                type = function->getReturnType();
            if (!can_carry(type) || frontend::of_standard_library(to)) continue;
            const auto* parameter = llvm::dyn_cast<clang::ParmVarDecl>(to);
            if (parameter != nullptr && gets_value(parameter)) continue;
            for (const source& from : all)
                if (type->isReferenceType() ? is_slot(from.value) : is_slot_address(from.value)) {
                    carriers_.insert(to);
                    changed = true;
                    break;
                }
        }
    }
}

std::vector<slot_flow::source> slot_flow::strangers(const clang::ValueDecl* carrier) const {
    std::vector<source> found;
    const auto known = sources_.find(carrier);
    if (known == sources_.end()) return found;
    for (const source& from : known->second)
        if (!is_slot(from.value) && !is_slot_address(from.value) && !is_null(from.value, in_.ast))
            found.push_back(from);
    return found;
}

bool slot_flow::runs_inside(const clang::FunctionDecl* function) const {
    if (function == nullptr) return false;
    const frontend::role is = in_.roles.role_of(function);
    if (is != frontend::role::none) return is == frontend::role::internal;
    return inside_.contains(function->getCanonicalDecl());
}

// Those are taken to be such, until a caller is found that is no operation.
void slot_flow::find_inside() {
    for (const auto& [function, callers] : callers_)
        if (in_.roles.role_of(function) == frontend::role::none &&
            !function->isExternallyVisible() && !llvm::isa<clang::CXXMethodDecl>(function) &&
            named_.lookup(function) == callers.size())
            inside_.insert(function);
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& [function, callers] : callers_)
            if (inside_.contains(function) &&
                !llvm::all_of(callers, [this](const auto* caller) { return operates(caller); }))
                changed = inside_.erase(function) || changed;
    }
}

bool slot_flow::operates(const clang::FunctionDecl* function) const {
    return function != nullptr &&
           (in_.roles.role_of(function) == frontend::role::entry || runs_inside(function));
}

std::vector<slot_flow::source>
slot_flow::made_by(const clang::FunctionDecl* maker,
                   std::vector<const clang::CallExpr*>& unknown) const {
    const auto returned = sources_.find(key(maker));
    if (returned == sources_.end()) return {};
    return trace(returned->second, maker->getCanonicalDecl(), &unknown);
}

std::vector<slot_flow::source>
slot_flow::trace(std::vector<source> work, const clang::FunctionDecl* maker,
                 std::vector<const clang::CallExpr*>* unknown) const {
    std::vector<source> found;
    llvm::DenseSet<const clang::Expr*> seen;
    const auto follow = [&](const clang::ValueDecl* to) {
        const auto known = sources_.find(key(to));
        if (known != sources_.end())
            work.insert(work.end(), known->second.begin(), known->second.end());
    };
    while (!work.empty()) {
        const source at = work.back();
        work.pop_back();
        const bool in_maker =
            maker != nullptr && at.in != nullptr && at.in->getCanonicalDecl() == maker;
        if (!in_maker && !operates(at.in)) continue;
        const clang::Expr* value = bare(at.value);
        if (!seen.insert(value).second) continue;
        const auto add = [&](const clang::Expr* more) { work.push_back({more, at.in}); };
        const auto* any_call = llvm::dyn_cast<clang::CallExpr>(value);
        if (any_call != nullptr && any_call->getDirectCallee() != nullptr &&
            is_maker(any_call->getDirectCallee())) {
            found.push_back({value, at.in});
            continue;
        }
        if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(value)) {
            add(cast->getSubExpr());
        } else if (llvm::isa<clang::CXXNewExpr>(value)) {
            found.push_back({value, at.in});
        } else if (const auto* either = llvm::dyn_cast<clang::ConditionalOperator>(value)) {
            add(either->getTrueExpr());
            add(either->getFalseExpr());
        } else if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(value)) {
            if (op->isAssignmentOp() || op->isCommaOp()) add(op->getRHS());
        } else if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(value)) {
            const auto* variable = llvm::dyn_cast<clang::VarDecl>(name->getDecl());
            if (variable == nullptr || !variable->hasLocalStorage()) continue;
            const auto* parameter = llvm::dyn_cast<clang::ParmVarDecl>(variable);
            // What a caller outside of operations hands over, it may keep.
            if (parameter == nullptr ||
                runs_inside(llvm::dyn_cast<clang::FunctionDecl>(parameter->getDeclContext())))
                follow(variable);
        } else if (const auto* construct = llvm::dyn_cast<clang::CXXConstructExpr>(value)) {
            for (const auto* argument : construct->arguments()) add(argument);
        } else if (const auto* list = llvm::dyn_cast<clang::InitListExpr>(value)) {
            for (const auto* part : list->inits()) add(part);
        } else if (const auto* member = llvm::dyn_cast<clang::CXXMemberCallExpr>(value)) {
            if (frontend::standard_name(member->getRecordDecl()) == "unique_ptr")
                add(member->getImplicitObjectArgument());
            else if (runs_inside(member->getMethodDecl()))
                follow(member->getMethodDecl());
        } else if (const auto* call = llvm::dyn_cast<clang::CallExpr>(value)) {
            const llvm::StringRef library = standard_callee(call);
            const auto* callee = call->getDirectCallee();
            if (library == "move" || library == "forward") {
                if (call->getNumArgs() == 1) add(call->getArg(0));
            } else if (library == "exchange") {
                add(call->getArg(0));
            } else if (library == "make_unique") {
                found.push_back({value, at.in});
            } else if (callee != nullptr && !callee->hasBody()) {
                found.push_back({value, at.in}); // malloc, if that is what it is
            } else if (runs_inside(callee)) {
                follow(callee);
            } else if (in_maker && callee != nullptr && !frontend::of_standard_library(callee)) {
                unknown->push_back(call);
            }
        }
    }
    return found;
}

} // namespace obase::rewrite
