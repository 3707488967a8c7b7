// SPDX-License-Identifier: MIT
//
// The refusals of the front end: what the passes behind it could not see. They see loads, stores and
// addresses of marked fields; not that a copy of bytes is that of a struct, that a union has another
// view of a slot, or what a member pointer will point to.
//
// Each function looks at one kind of node; unit_visitor.hpp brings them the nodes.
#pragma once

#include "marked_types.hpp"
#include "report.hpp"
#include "visibility.hpp"

#include "clang/AST/ASTContext.h"
#include "clang/AST/Expr.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/Stmt.h"

namespace obase::frontend {

struct unit {
    clang::ASTContext& ast;
    marked_types& types;
    visibility& roles;
    report& says;

    // Where the node is; for code of a library that was instantiated with a type of the program, the
    // type, with a note where it happens.
    bool refuse_for(const clang::FieldDecl* mark, clang::SourceLocation where,
                    llvm::StringRef check, const std::string& what, const std::string& advice);
    bool in_library(clang::SourceLocation where) const;
};

// The marked field whose slot this expression denotes, as a place and not as its value; null if it
// is none: `n->next`, `n->child[i]`.
const clang::FieldDecl* slot_named(const clang::Expr* expression, marked_types& types);
// The same for an address of a slot: `&n->next`, `n->child`.
const clang::FieldDecl* slot_address(const clang::Expr* expression, marked_types& types);

// declaration_checks.cpp
void check_marked_field(unit& in, const clang::FieldDecl* field);
void check_mark_place(unit& in, const clang::Decl* declaration);
void check_union(unit& in, const clang::RecordDecl* record);
void check_by_value(unit& in, const clang::FunctionDecl* function);
void check_coroutine(unit& in, const clang::FunctionDecl* function);
void check_static_initializer(unit& in, const clang::VarDecl* variable);

// copy_checks.cpp
void check_construct(unit& in, const clang::CXXConstructExpr* construct);
void check_call_of_assignment(unit& in, const clang::CallExpr* call);
void check_record_load(unit& in, const clang::ImplicitCastExpr* cast);

// byte_checks.cpp
void check_byte_function(unit& in, const clang::CallExpr* call);
void check_cast(unit& in, const clang::ExplicitCastExpr* cast);
void check_bit_cast(unit& in, const clang::BuiltinBitCastExpr* cast);

// address_checks.cpp
void check_member_pointer(unit& in, const clang::UnaryOperator* address_of);
void check_offsetof(unit& in, const clang::OffsetOfExpr* offset);
void check_return(unit& in, const clang::ReturnStmt* statement,
                  const clang::FunctionDecl* function);
void check_assignment(unit& in, const clang::BinaryOperator* assignment);
void check_arguments(unit& in, const clang::CallExpr* call);
void check_jump(unit& in, const clang::CallExpr* call, const clang::FunctionDecl* function);
void check_asm(unit& in, const clang::GCCAsmStmt* statement);

} // namespace obase::frontend
