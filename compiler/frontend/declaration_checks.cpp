// SPDX-License-Identifier: MIT
#include "annotations.hpp"
#include "checks.hpp"

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/RecordLayout.h"
#include "clang/AST/StmtCXX.h"

namespace obase::frontend {

namespace {

// A marked field must be a pointer, in one of the forms that the passes know.
bool is_slot_type(clang::QualType type) {
    const clang::QualType pointee = marked_types::pointee(type);
    return !pointee.isNull() && !pointee->isFunctionType();
}

bool is_const(clang::QualType type) {
    while (const auto* array = type->getAsArrayTypeUnsafe()) type = array->getElementType();
    return type.isConstQualified();
}

} // namespace

void check_marked_field(unit& in, const clang::FieldDecl* field) {
    const clang::SourceLocation where = field->getLocation();
    const clang::RecordDecl* record = field->getParent();
    if (record->isDependentContext() || record->isInvalidDecl()) return;

    if (!is_slot_type(field->getType())) {
        in.says.refuse(where, "mark-type",
                       quoted(field) + " of type " + quoted(field->getType(), in.ast) +
                           " is marked, but only pointers to objects can be",
                       "mark a T*, std::atomic<T*>, std::unique_ptr<T>, or an array of these");
        return;
    }
    clang::QualType one = field->getType();
    while (const auto* array = one->getAsArrayTypeUnsafe()) one = array->getElementType();
    if (in.ast.getTypeSize(one) != in.ast.getTypeSize(in.ast.VoidPtrTy)) {
        in.says.refuse(where, "mark-type",
                       quoted(field) + " of type " + quoted(field->getType(), in.ast) +
                           " is marked, but its deleter lies beside the pointer",
                       "give it a deleter that is a class without members, and calls the function");
        return;
    }
    if (is_const(field->getType()))
        in.says.refuse(where, "mark-const",
                       quoted(field) +
                           " is marked, but const: the word changes when its object moves",
                       "remove const from the pointer; what it points to may be const");
    if (record->isUnion()) return; // check_union

    const auto& layout = in.ast.getASTRecordLayout(record);
    if (layout.getFieldOffset(field->getFieldIndex()) % 64 != 0 ||
        layout.getAlignment().getQuantity() % 8 != 0)
        in.says.refuse(where, "mark-alignment",
                       quoted(field) +
                           " is marked, but may lie at an address that is no multiple of 8",
                       "remove packed, or align the struct and the field to 8 bytes");

    const clang::QualType to = marked_types::pointee(field);
    if (to.isNull() || to->isVoidType()) return;
    if (std::string why = in.types.why_immovable(to); !why.empty())
        in.says.refuse(
            where, "immovable",
            quoted(field) + " is marked, but the objects it points to, of type " +
                quoted(to, in.ast) + ", cannot be moved by their bytes: " + why,
            "replace that member (obase::string and obase::bytes hold text and move), keep "
            "it behind a pointer that is not marked, or leave this field unmarked");
}

// A variable of this file alone: what other files do with one would not be seen.
void check_marked_variable(unit& in, const clang::VarDecl* variable) {
    const auto refuse = [&](const char* check, const std::string& what, const char* advice) {
        in.says.refuse(variable->getLocation(), check, quoted(variable) + what, advice);
    };
    constexpr char into_struct[] = "put the pointer into a struct and mark it there";
    if (variable->getFormalLinkage() != clang::Linkage::Internal)
        refuse("mark-place", " is marked, but other files may use it, in which it is not",
               "make it static, or put the pointer into a struct and mark it there");
    else if (variable->getTLSKind() != clang::VarDecl::TLS_None)
        refuse("mark-place", " is marked, but ends with each thread", into_struct);
    else if (!is_slot_type(variable->getType()) ||
             standard_name(record_of(variable->getType())) == "unique_ptr")
        refuse("mark-type", " is marked, but only pointers to objects can be",
               "mark a T*, std::atomic<T*> or an array of these; a struct may have "
               "std::unique_ptr<T>");
    else if (is_const(variable->getType()))
        refuse("mark-const", " is marked, but const: the word changes when its object moves",
               "remove const from the pointer; what it points to may be const");
    const clang::QualType to = marked_types::pointee(variable->getType());
    if (to.isNull() || to->isVoidType()) return;
    if (const std::string why = in.types.why_immovable(to); !why.empty())
        refuse("immovable",
               " is marked, but the objects it points to, of type " + quoted(to, in.ast) +
                   ", cannot be moved by their bytes: " + why,
               "replace that member, or leave this variable unmarked");
}

void check_mark_place(unit& in, const clang::Decl* declaration) {
    if (llvm::isa<clang::FieldDecl>(declaration) || !annotated(declaration, guided_text)) return;
    if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(declaration);
        variable != nullptr && variable->isFileVarDecl() && !variable->isStaticDataMember()) {
        check_marked_variable(in, variable);
        return;
    }
    const char* what = llvm::isa<clang::ParmVarDecl>(declaration)       ? "a parameter"
                       : llvm::isa<clang::VarDecl>(declaration)         ? "a variable"
                       : llvm::isa<clang::FunctionDecl>(declaration)    ? "a function"
                       : llvm::isa<clang::TypedefNameDecl>(declaration) ? "a type name"
                       : llvm::isa<clang::RecordDecl>(declaration)      ? "a class"
                                                                        : "this";
    in.says.refuse(declaration->getLocation(), "mark-place",
                   std::string(what) + " is marked, but only a field of a struct can be a slot",
                   "put the pointer into a struct, or a static variable of the file, and mark it "
                   "there");
}

void check_union(unit& in, const clang::RecordDecl* record) {
    if (!record->isUnion() || record->isDependentContext() || record->isInvalidDecl()) return;
    const auto* mark = in.types.held_mark(clang::QualType(record->getTypeForDecl(), 0));
    if (mark == nullptr) return;
    in.refuse_for(mark, record->getLocation(), "union",
                  "a union holds the marked field " + quoted(mark) +
                      ": its other members would see the slot's word",
                  "use a struct, or two unmarked pointers and a tag");
}

// Where a type is passed in registers its bytes are copied, and no constructor tells us.
void check_by_value(unit& in, const clang::FunctionDecl* function) {
    if (function->isDependentContext() || function->isImplicit() || function->isDefaulted()) return;
    const auto check = [&](clang::QualType type, clang::SourceLocation where, const char* how) {
        const auto* record = type->isArrayType() ? nullptr : record_of(type);
        if (record == nullptr || type->isPointerType() || type->isReferenceType()) return;
        const auto* mark = in.types.held_mark(type);
        if (mark == nullptr || !record->canPassInRegisters()) return;
        in.refuse_for(mark, where, "struct-copy",
                      quoted(record) + " with the marked field " + quoted(mark) + " is " + how +
                          " by value, so its slots are copied as bytes",
                      "pass a pointer or a reference, or give the class a move constructor");
    };
    check(function->getReturnType(), function->getLocation(), "returned");
    for (const auto* parameter : function->parameters())
        check(parameter->getType(), parameter->getLocation(), "passed");
}

void check_coroutine(unit& in, const clang::FunctionDecl* function) {
    if (!llvm::isa_and_nonnull<clang::CoroutineBodyStmt>(function->getBody())) return;
    if (in.roles.role_of(function) == role::none) return;
    in.says.refuse(function->getLocation(), "coroutine",
                   quoted(function) + " is part of an operation and a coroutine: addresses would "
                                      "outlive the scope when it is suspended",
                   "do the work on marked fields in functions that the coroutine calls between its "
                   "suspensions");
}

void check_static_initializer(unit& in, const clang::VarDecl* variable) {
    if (!variable->hasGlobalStorage() || !variable->hasInit()) return;
    const auto* mark = slot_address(variable->getInit(), in.types);
    if (mark == nullptr && variable->getType()->isReferenceType())
        mark = slot_named(variable->getInit()->IgnoreImpCasts(), in.types);
    if (mark == nullptr) return;
    in.says.refuse(variable->getLocation(), "slot-escape",
                   quoted(variable) + " keeps the address of the slot " + quoted(mark) +
                       " beyond every operation",
                   "keep the struct's address and name the field where it is used");
}

} // namespace obase::frontend
