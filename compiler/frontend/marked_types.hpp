// SPDX-License-Identifier: MIT
//
// The front end's knowledge of types: which fields are marked, which types hold such fields by
// value, which are pointed to by them (so their objects are managed and move), and whether a type's
// objects can be moved by their bytes.
#pragma once

#include "outside_marks.hpp"
#include "report.hpp"

#include "clang/AST/ASTContext.h"
#include "clang/AST/Decl.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace obase::frontend {

class marked_types {
  public:
    marked_types(outside_marks& outside, report& says) : outside_(outside), says_(says) {}

    // Looks at a definition once: applies the marks from outside, notes what marked fields point
    // to. The others do it by themselves for the types they come across.
    void look_at(const clang::RecordDecl* record);

    // The same for a variable, which may be marked.
    void look_at(clang::VarDecl* variable);

    bool is_marked(const clang::FieldDecl* field);

    // A marked field of the record itself; null if there is none.
    const clang::FieldDecl* declared_mark(const clang::RecordDecl* record);

    // A marked field within an object of this type: of the type, of its bases, members and array
    // elements; null if there is none.
    const clang::FieldDecl* held_mark(clang::QualType type);

    // A marked field that the compiler's own copy or assignment of an object of this type would
    // duplicate. A member type with a copy function written by hand takes care of its own.
    const clang::FieldDecl* mark_copied_by_default(const clang::RecordDecl* record,
                                                   bool assignment);

    // Marked fields point to objects of this type (or of a type derived from it).
    bool is_managed(const clang::RecordDecl* record);

    // The type that a marked field points to; null if it is no pointer.
    static clang::QualType pointee(const clang::FieldDecl* field);
    // The same of a type: a pointer, std::atomic or _Atomic of one, std::unique_ptr, or arrays of these.
    static clang::QualType pointee(clang::QualType type);

    // What the elements point to of an array of pointers with this element type; else null.
    static clang::QualType element_pointee(clang::QualType array);

    // Why an object of this type cannot be moved by its bytes; empty if nothing speaks against it.
    std::string why_immovable(clang::QualType type);

    const llvm::SetVector<const clang::FieldDecl*>& marks() const { return marks_; }

  private:
    void look_at_pointee(clang::DeclaratorDecl* marked);

    outside_marks& outside_;
    report& says_;
    llvm::DenseSet<const clang::RecordDecl*> seen_;
    llvm::DenseSet<const clang::RecordDecl*> managed_;
    llvm::DenseMap<const clang::RecordDecl*, const clang::FieldDecl*> held_;
    llvm::SetVector<const clang::FieldDecl*> marks_;
};

// The record that a type is made of, through arrays and atomics, not through pointers; its
// definition; null if it is something else or has none.
const clang::RecordDecl* record_of(clang::QualType type);

// The record of namespace std with this name, as in atomic, unique_ptr; empty if it is none.
llvm::StringRef standard_name(const clang::RecordDecl* record);

// Does the declaration belong to the C++ library? Its fields are never marked, and its functions
// are no operations, whatever types of the program they are instantiated with.
bool of_standard_library(const clang::Decl* declaration);

// The n-th template argument of a class, if it is a type; null otherwise.
clang::QualType type_argument(const clang::RecordDecl* record, unsigned n);

// For messages: 'list::head', 'struct node *'.
std::string quoted(const clang::NamedDecl* declaration);
std::string quoted(clang::QualType type, const clang::ASTContext& ast);

} // namespace obase::frontend
