// SPDX-License-Identifier: MIT
//
// The facts about a function's body that visibility needs.
#pragma once

#include "marked_types.hpp"
#include "visibility.hpp"

#include "clang/AST/Decl.h"
#include "clang/AST/ExprCXX.h"

#include <utility>
#include <vector>

namespace obase::frontend {

struct body_facts {
    // A marked field or variable that is named; null if none is.
    const clang::DeclaratorDecl* mark = nullptr;
    // A member of a managed type that is named.
    const clang::FieldDecl* managed_member = nullptr;
    std::vector<visibility::use> uses;
    // Closures, innermost last, and whether each is only called where it is written. One that is
    // stored, passed or returned may run later, or in another thread.
    std::vector<std::pair<const clang::LambdaExpr*, bool>> closures;
};

body_facts facts_of(const clang::FunctionDecl* function, marked_types& types);
body_facts facts_of(clang::Stmt* statement, marked_types& types);

} // namespace obase::frontend
