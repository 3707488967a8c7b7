// SPDX-License-Identifier: MIT
//
// The names by which the front end and the passes speak to each other: strings of clang's annotate
// attribute. On a field clang turns one into llvm.ptr.annotation at each access, on a function into
// an element of llvm.global.annotations.
#pragma once

#include "clang/AST/Attr.h"
#include "clang/AST/Decl.h"
#include "clang/AST/Expr.h"
#include "clang/Basic/SourceManager.h"
#include "llvm/ADT/STLExtras.h"

namespace obase::frontend {

// On a field: its word is a slot.
inline constexpr char guided_text[] = "obase::guided";
// On a marked field as well: what it holds is an array of pointers, each of which is a slot.
inline constexpr char elements_text[] = "obase::guided.elements";
// On a function: it opens a scope of its own.
inline constexpr char entry_text[] = "obase::entry";
// On a function: it runs in its caller's scope.
inline constexpr char internal_text[] = "obase::internal";
// On a function, by the programmer only: neither; it is no part of any operation.
inline constexpr char outside_text[] = "obase::outside";
// On a function, by the programmer only, beside the others: it allocates what it returns, for marked
// fields among other things. Its callers may be in other translation units. On a field that is a
// pointer to a function: what it points to does.
inline constexpr char makes_text[] = "obase::makes";

// On a destructor, by the front end: with it marked fields of the object end, its own or those in it.
inline constexpr char ends_slots_text[] = "obase::ends_slots";

inline bool annotated(const clang::Decl* declaration, llvm::StringRef text) {
    for (const auto* attribute : declaration->specific_attrs<clang::AnnotateAttr>())
        if (attribute->getAnnotation() == text) return true;
    return false;
}

inline void annotate(clang::Decl* declaration, llvm::StringRef text) {
    if (annotated(declaration, text)) return;
    declaration->addAttr(
        clang::AnnotateAttr::CreateImplicit(declaration->getASTContext(), text, nullptr, 0));
}

inline void remove_annotation(clang::Decl* declaration, llvm::StringRef text) {
    if (!annotated(declaration, text)) return;
    auto& attributes = declaration->getAttrs();
    llvm::erase_if(attributes, [&](const clang::Attr* attribute) {
        const auto* found = llvm::dyn_cast<clang::AnnotateAttr>(attribute);
        return found != nullptr && found->getAnnotation() == text;
    });
    if (attributes.empty()) declaration->dropAttrs();
}

// Says more of what the annotation is about, for tables that the passes make (site_table.cpp): a string as the
// attribute's argument, which clang makes the fifth of llvm.ptr.annotation.
inline void annotate_about(clang::Decl* declaration, llvm::StringRef text, llvm::StringRef about) {
    clang::ASTContext& ast = declaration->getASTContext();
    const clang::QualType bytes =
        ast.getConstantArrayType(ast.CharTy, llvm::APInt(64, about.size() + 1), nullptr,
                                 clang::ArraySizeModifier::Normal, 0);
    auto* literal = clang::StringLiteral::Create(ast, about, clang::StringLiteralKind::Ordinary,
                                                 false, bytes, clang::SourceLocation());
    auto* decayed = clang::ImplicitCastExpr::Create(ast, ast.getPointerType(ast.CharTy),
                                                    clang::CK_ArrayToPointerDecay, literal, nullptr,
                                                    clang::VK_PRValue, clang::FPOptionsOverride());
    const clang::APValue first(clang::APValue::LValueBase(literal), clang::CharUnits::Zero(),
                               {clang::APValue::LValuePathEntry::ArrayIndex(0)}, false);
    clang::Expr* arguments[] = {clang::ConstantExpr::Create(ast, decayed, first)};
    // A mark that is written in the source stays where it is written: obase-rewrite takes it out there.
    clang::AnnotateAttr* told = nullptr;
    for (const auto* attribute : declaration->specific_attrs<clang::AnnotateAttr>())
        if (attribute->getAnnotation() == text && !attribute->isImplicit())
            told = clang::AnnotateAttr::Create(ast, text, arguments, 1, *attribute);
    if (told == nullptr) told = clang::AnnotateAttr::CreateImplicit(ast, text, arguments, 1);
    remove_annotation(declaration, text);
    declaration->addAttr(told);
}

} // namespace obase::frontend
