// SPDX-License-Identifier: MIT
//
// Visibility extraction: which functions are the operations of the marked data structures.
//
// An *entry* can be called from outside, so it opens a scope. An *internal* function can only be
// called by one that has a scope open, so it needs none and may return addresses of managed objects.
// All other functions are no part of an operation. docs/compiler.md has the rules with examples; in
// short, a function works on marked data if it names a marked field, is a method of a class made of
// such fields, or takes a managed object or a structure with accessible marked fields. Of those,
// public methods and functions with external linkage are entries.
//
// The decision for a function that other translation units may see depends on declarations only, so
// that they all decide alike. For functions with internal linkage and closures it may change at the
// end of the translation unit, when all uses are known; clang reads the attributes only then.
#pragma once

#include "marked_types.hpp"
#include "outside_marks.hpp"
#include "report.hpp"

#include "clang/AST/ASTContext.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/ExprCXX.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <string>
#include <vector>

namespace obase::frontend {

enum class role { none, entry, internal };

class visibility {
  public:
    struct use {
        const clang::FunctionDecl* of;
        clang::SourceLocation where;
        bool call;                  // otherwise its address is taken
        clang::SourceLocation text; // of the default argument or member initializer that does it
    };
    struct decision {
        role is = role::none;
        std::string why;
        bool needs_scope = false; // it touches a slot or a managed object itself
        bool may_change = false;
        bool stays_outside = false; // by annotation or marks file
        bool if_it_reaches = false; // a closure, which is none of it if it works on no slots
        std::vector<use> uses;
    };
    using decisions = llvm::MapVector<const clang::FunctionDecl*, decision>;

    visibility(marked_types& types, const outside_marks& outside, report& says)
        : types_(types), outside_(outside), says_(says) {}

    // Decides for this definition, and for the closures in it, and annotates them.
    void look_at(clang::FunctionDecl* function);
    // The initializer of a variable outside of functions: what it uses is used from outside.
    void look_at(clang::VarDecl* variable);
    // A class is complete. Its implicit constructors are examined when all is known, since they
    // have bodies only if they are used.
    void look_at(const clang::CXXRecordDecl* record) { classes_.insert(record); }
    // All uses are known: functions that are used from outside become entries or errors.
    void finish();

    role role_of(const clang::FunctionDecl* function) const;
    const decisions& all() const { return decisions_; }

  private:
    decision decide(const clang::FunctionDecl* function, const struct body_facts& facts);
    std::string why_class_needs_scope(const clang::CXXRecordDecl* record);
    const clang::RecordDecl* worked_on_by_parameters(const clang::FunctionDecl* function,
                                                     bool& managed);
    bool accessible(const clang::FieldDecl* mark, const clang::RecordDecl* from_class,
                    const clang::FunctionDecl* from_function);
    void place(const clang::FunctionDecl* function, bool managed, decision& made);
    void look_at_defaulted();
    void add_callers();
    void set(clang::FunctionDecl* function, decision what);
    void place_closure(const clang::FunctionDecl* function, decision& made);
    void resolve_closures();
    void set_closure(const clang::LambdaExpr* closure, bool stays_here, role enclosing);
    void promote(const clang::FunctionDecl* function, const std::string& why);
    bool said_internal(const clang::FunctionDecl* function) const;
    bool reaches_slots(const clang::FunctionDecl* function);

    marked_types& types_;
    const outside_marks& outside_;
    report& says_;
    decisions decisions_;
    std::vector<use> uses_outside_;
    llvm::SetVector<const clang::CXXRecordDecl*> classes_;
};

} // namespace obase::frontend
