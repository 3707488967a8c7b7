// SPDX-License-Identifier: MIT
//
// Marks given from outside the source, for programs whose text is not ours to change: a file that
// names fields and functions, one a line.
//
//     # comment
//     item::next              the field `next` of struct item is a slot
//     cache::shard::head      namespaces and enclosing classes are part of the name
//     entry cache::get        the function opens a scope
//     internal item_unlink    it runs in its caller's scope
//     outside cache::run      it is no part of any operation
//     makes xmalloc           it allocates what it returns, for marked fields among other things
//
// Names are without template arguments, and without anonymous and inline namespaces.
#pragma once

#include "report.hpp"

#include "clang/AST/Decl.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

#include <map>
#include <string>

namespace obase::frontend {

// As in the file.
std::string plain_name(const clang::NamedDecl* declaration);

class outside_marks {
  public:
    // Empty if all is well, else what is wrong with the file.
    std::string read(llvm::StringRef path);

    // Annotates the fields of this record that the file names. Names of fields that the record does
    // not have are errors: a typing mistake would otherwise leave the program unmarked in silence.
    void apply(clang::RecordDecl* record, report& says);

    // "entry", "internal" or "outside" in the words of annotations.hpp; empty if not named.
    llvm::StringRef role(const clang::FunctionDecl* function) const;

    // True if a line "makes" names it: a function, or a field that points to one.
    bool makes(const clang::NamedDecl* function) const;

    bool names_field(const clang::FieldDecl* field) const;

  private:
    std::string path_;
    // record -> field -> line
    llvm::StringMap<std::map<std::string, unsigned>> fields_;
    llvm::StringMap<llvm::StringRef> roles_;
    llvm::StringSet<> makers_;
};

} // namespace obase::frontend
