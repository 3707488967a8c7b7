// SPDX-License-Identifier: MIT
//
// Addresses of slots where the passes cannot follow them: in member pointers and offsets, outside of
// the operation, in code that is not compiled with the passes.
#include "checks.hpp"

#include "clang/AST/Decl.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/Expr.h"
#include "clang/AST/Stmt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace obase::frontend {

namespace {

constexpr char name_it_there[] = "pass the struct's address and name the field there";

// An argument that gives the callee a slot: its address, or a reference to it.
const clang::FieldDecl* slot_given(const clang::Expr* argument, marked_types& types) {
    if (const auto* slot = slot_address(argument, types)) return slot;
    const auto* plain = argument->IgnoreParens();
    return plain->isGLValue() ? slot_named(plain, types) : nullptr;
}

} // namespace

void check_member_pointer(unit& in, const clang::UnaryOperator* address_of) {
    if (address_of->getOpcode() != clang::UO_AddrOf) return;
    const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(address_of->getSubExpr()->IgnoreParens());
    if (name == nullptr) return;
    const auto* field = llvm::dyn_cast<clang::FieldDecl>(name->getDecl());
    if (field == nullptr || !in.types.is_marked(field)) return;
    in.refuse_for(field, address_of->getOperatorLoc(), "member-pointer",
                  "a member pointer to the marked field " + quoted(field) +
                      " hides from the passes which accesses are to a slot",
                  "write a function, or a closure, that names the field");
}

void check_offsetof(unit& in, const clang::OffsetOfExpr* offset) {
    for (unsigned i = 0; i < offset->getNumComponents(); ++i) {
        const auto& part = offset->getComponent(i);
        if (part.getKind() != clang::OffsetOfNode::Field) continue;
        const auto* field = part.getField();
        if (!in.types.is_marked(field)) continue;
        in.refuse_for(field, offset->getExprLoc(), "offsetof",
                      "the offset of the marked field " + quoted(field) +
                          " makes accesses that the passes cannot see",
                      "name the field; to find a struct by one of its members, use another member");
    }
}

void check_return(unit& in, const clang::ReturnStmt* statement,
                  const clang::FunctionDecl* function) {
    const clang::Expr* value = statement->getRetValue();
    if (value == nullptr || function == nullptr) return;
    if (in.roles.role_of(function) == role::internal) return;
    const clang::QualType type = function->getReturnType();
    const clang::FieldDecl* mark = nullptr;
    if (type->isReferenceType())
        mark = slot_named(value->IgnoreParenImpCasts(), in.types);
    else if (type->isPointerType())
        mark = slot_address(value, in.types);
    if (mark == nullptr) return;
    in.refuse_for(
        mark, statement->getReturnLoc(), "slot-escape",
        quoted(function) + " gives the slot " + quoted(mark) +
            " to a caller outside of the operation",
        "return what the caller needs to know; if only operations call it, make it private "
        "or mark it OBASE_INTERNAL");
}

void check_assignment(unit& in, const clang::BinaryOperator* assignment) {
    if (assignment->getOpcode() != clang::BO_Assign) return;
    if (!assignment->getType()->isPointerType()) return;
    const auto* mark = slot_address(assignment->getRHS(), in.types);
    if (mark == nullptr) return;
    const clang::Expr* to = assignment->getLHS()->IgnoreParens();
    // x.y.z and x[i] are parts of x.
    for (;;) {
        if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(to)) {
            if (member->isArrow()) break;
            to = member->getBase()->IgnoreParens();
        } else if (const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(to)) {
            const auto* array = element->getBase()->IgnoreParenImpCasts();
            if (!array->getType()->isArrayType()) break;
            to = array;
        } else {
            break;
        }
    }
    bool stays = false;
    if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(to))
        if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(name->getDecl()))
            stays = variable->hasLocalStorage();
    // *out = &n->next: the caller's, which is in the same operation if this function is internal.
    if (llvm::isa<clang::UnaryOperator>(to)) stays = true;
    if (stays) return;
    in.refuse_for(mark, assignment->getExprLoc(), "slot-escape",
                  "the address of the slot " + quoted(mark) + " is kept beyond the operation",
                  "keep the struct's address in a marked field, or in a local variable");
}

void check_arguments(unit& in, const clang::CallExpr* call) {
    const auto* callee = call->getDirectCallee();
    if (callee != nullptr && (callee->getBuiltinID() != 0 || callee->isDefined())) return;
    // The passes know what these do.
    if (callee != nullptr && callee->getIdentifier() != nullptr &&
        llvm::is_contained({"asprintf", "vasprintf", "__asprintf_chk", "__vasprintf_chk"},
                           callee->getName()))
        return;
    for (const auto* argument : call->arguments()) {
        const auto* mark = slot_given(argument, in.types);
        if (mark == nullptr) continue;
        const std::string name = callee == nullptr ? "a function that is not known here"
                                                   : quoted(callee) + ", whose body is not here";
        in.refuse_for(mark, call->getExprLoc(), "slot-escape",
                      "the slot " + quoted(mark) + " is given to " + name, name_it_there);
        return;
    }
}

void check_jump(unit& in, const clang::CallExpr* call, const clang::FunctionDecl* function) {
    const auto* callee = call->getDirectCallee();
    if (callee == nullptr || function == nullptr || callee->getIdentifier() == nullptr) return;
    if (in.roles.role_of(function) == role::none) return;
    llvm::StringRef name = callee->getName();
    name.consume_front("__builtin_");
    name.consume_front("_");
    const bool jumps = llvm::StringSwitch<bool>(name)
                           .Cases("setjmp", "sigsetjmp", "_sigsetjmp", true)
                           .Cases("longjmp", "siglongjmp", true)
                           .Cases("swapcontext", "setcontext", "getcontext", "makecontext", true)
                           .Case("vfork", true)
                           .Default(false);
    if (!jumps) return;
    in.says.refuse(call->getExprLoc(), "jump",
                   "'" + callee->getName().ltrim('_').str() + "' in " + quoted(function) +
                       ", which is part of an operation, may leave the scope without ending it",
                   "return an error, or throw; jump only in functions that are no operations");
}

void check_asm(unit& in, const clang::GCCAsmStmt* statement) {
    const auto check = [&](const clang::Expr* operand, bool is_input) {
        if (operand == nullptr) return;
        const auto* mark = slot_named(operand->IgnoreParenImpCasts(), in.types);
        if (mark == nullptr) mark = slot_address(operand, in.types);
        if (mark != nullptr) {
            in.refuse_for(mark, statement->getAsmLoc(), "asm",
                          "inline assembly uses the slot " + quoted(mark),
                          "load the field into a variable first, or use __atomic builtins");
            return;
        }
        // Without instructions it hides where the address comes from, and uses nothing.
        if (!is_input || statement->getAsmString()->getString().empty()) return;
        const clang::QualType type = operand->IgnoreParenCasts()->getType();
        const clang::QualType to = type->isArrayType() ? type : type->getPointeeType();
        mark = to.isNull() ? nullptr : in.types.held_mark(to);
        if (mark != nullptr)
            in.refuse_for(mark, statement->getAsmLoc(), "asm",
                          "inline assembly gets the address of a struct with the marked field " +
                              quoted(mark),
                          "hand over what it needs: the value of a field, or its address");
    };
    for (unsigned i = 0; i < statement->getNumOutputs(); ++i)
        check(statement->getOutputExpr(i), statement->isOutputPlusConstraint(i));
    for (unsigned i = 0; i < statement->getNumInputs(); ++i)
        check(statement->getInputExpr(i), true);
}

} // namespace obase::frontend
