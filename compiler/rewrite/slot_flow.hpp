// SPDX-License-Identifier: MIT
//
// Which expressions denote slots: marked fields, and what is reached through the variables and
// functions of the translation unit that hold, take or return addresses of such, or references to
// them. And which allocations end in slots.
//
// One graph serves both: for each variable, and for the result of each function, the expressions that
// give it a value, with the function each stands in.
#pragma once

#include "compiler/frontend/checks.hpp"

#include "clang/AST/Expr.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <vector>

namespace obase::rewrite {

// How a marked field is declared.
enum class slot_kind { plain, atomic, owner, other };

slot_kind kind_of(clang::QualType type);

// Without parentheses, and without casts that only add const or that the compiler writes for calls of
// members.
const clang::Expr* bare(const clang::Expr* expression);

// The function std::NAME that is called; empty if it is none.
llvm::StringRef standard_callee(const clang::CallExpr* call);

// Does the parameter only get what a slot holds? One that refers to const, and one that forwards what
// it is given; for class types the slot itself.
bool gets_value(const clang::ParmVarDecl* parameter);

// Does a marks file, or the source, say that it makes what it returns (frontend::makes_text)?
bool is_maker(const clang::FunctionDecl* function);

class slot_flow {
  public:
    struct source {
        const clang::Expr* value;
        const clang::FunctionDecl* in; // null outside of functions
    };

    slot_flow(frontend::unit& in) : in_(in) {}

    // A variable, or a function for what it returns, gets a value.
    void gives(const clang::ValueDecl* to, const clang::Expr* value,
               const clang::FunctionDecl* in_function);
    // A value is stored into a slot.
    void stored(const clang::Expr* value, const clang::FunctionDecl* in_function) {
        stored_.push_back({value, in_function});
    }
    // A function is called, or merely named: called as well, or its address is taken.
    void calls(const clang::FunctionDecl* callee, const clang::FunctionDecl* in_function) {
        callers_[callee->getCanonicalDecl()].push_back(in_function);
    }
    void names(const clang::FunctionDecl* function) { ++named_[function->getCanonicalDecl()]; }
    // All is known: finds the variables and functions.
    void solve();

    // An lvalue that is a slot's place.
    bool is_slot(const clang::Expr* expression) const;
    // A slot that is reached through an address that is kept, and not by its name.
    bool is_reached(const clang::Expr* slot) const;
    // A value that is a slot's address.
    bool is_slot_address(const clang::Expr* expression) const;

    // Those that hold or return addresses of slots, or are references to them.
    const llvm::SetVector<const clang::ValueDecl*>& carriers() const { return carriers_; }
    // Values of a carrier that are no slot's address.
    std::vector<source> strangers(const clang::ValueDecl* carrier) const;
    bool carries(const clang::ValueDecl* declaration) const {
        return carriers_.contains(key(declaration));
    }

    // new, malloc, make_unique and calls of makers whose results end in slots, within operations.
    std::vector<source> allocations() const { return trace(stored_, nullptr); }
    // The same for what the maker returns, in it and in the parts of operations that it calls.
    // `unknown` are those calls in it of functions that are compiled here and are neither.
    std::vector<source> made_by(const clang::FunctionDecl* maker,
                                std::vector<const clang::CallExpr*>& unknown) const;

  private:
    // Runs in the scope of its callers: the front end says so, or operations are all that call it.
    bool runs_inside(const clang::FunctionDecl* function) const;
    bool operates(const clang::FunctionDecl* function) const;
    void find_inside();
    std::vector<source> trace(std::vector<source> work, const clang::FunctionDecl* maker,
                              std::vector<const clang::CallExpr*>* unknown = nullptr) const;

    static const clang::ValueDecl* key(const clang::ValueDecl* declaration);

    frontend::unit& in_;
    llvm::MapVector<const clang::ValueDecl*, std::vector<source>> sources_;
    std::vector<source> stored_;
    llvm::DenseMap<const clang::FunctionDecl*, std::vector<const clang::FunctionDecl*>> callers_;
    llvm::DenseMap<const clang::FunctionDecl*, unsigned> named_;
    // Functions for which the front end decided nothing, and which only operations call.
    llvm::DenseSet<const clang::FunctionDecl*> inside_;
    llvm::SetVector<const clang::ValueDecl*> carriers_;
};

} // namespace obase::rewrite
