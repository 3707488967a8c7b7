// SPDX-License-Identifier: MIT
//
// Slots seen as bytes: functions of the C library that copy, compare or write memory, and casts that
// make another view of it.
#include "checks.hpp"

#include "clang/AST/Decl.h"
#include "clang/AST/DeclCXX.h"
#include "clang/AST/Expr.h"
#include "clang/AST/RecordLayout.h"
#include "clang/Basic/Builtins.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace obase::frontend {

namespace {

struct byte_function {
    std::vector<unsigned> memory; // which arguments are addresses of it
    const char* does = nullptr;
    const char* instead = nullptr;
};

constexpr char field_by_field[] = "do it field by field; the passes see each marked field then";
constexpr char keep_it_out[] =
    "write the fields that belong outside one by one; an address means nothing there";

// Debian's headers turn some into builtins, and these into checked forms.
llvm::StringRef base_name(llvm::StringRef name) {
    name.consume_front("__builtin_");
    if (name.starts_with("__") && name.ends_with("_chk")) {
        name.consume_front("__");
        name.consume_back("_chk");
    }
    name.consume_front("__sync_");
    return name;
}

byte_function look_up(llvm::StringRef name) {
    const byte_function copy{{0, 1}, "copies the bytes of", field_by_field};
    const byte_function compare{{0, 1},
                                "compares the bytes of",
                                "compare field by field; the words of two slots differ although "
                                "they hold the same address"};
    const byte_function sort{{0},
                             "moves the elements as bytes of",
                             "sort an array of indexes, or link the elements in a new order"};
    const byte_function first{{0}, "reads or writes the bytes of", keep_it_out};
    const byte_function second{{1}, "reads or writes the bytes of", keep_it_out};
    return llvm::StringSwitch<byte_function>(name)
        .Cases("memcpy", "memmove", "mempcpy", "memccpy", "bcopy", copy)
        .Cases("memcmp", "bcmp", compare)
        .Cases("qsort", "qsort_r", sort)
        .Cases("fwrite", "fread", "fwrite_unlocked", "fread_unlocked", first)
        .Cases("write", "read", "pwrite", "pread", "pwrite64", "pread64", second)
        .Cases("send", "recv", "sendto", "recvfrom", second)
        .Default({});
}

// The marked field in the memory that this argument is the address of.
const clang::FieldDecl* mark_at(unit& in, const clang::Expr* argument) {
    if (const auto* slot = slot_address(argument, in.types)) return slot;
    const clang::Expr* plain = argument->IgnoreParenCasts();
    const clang::QualType type = plain->getType();
    if (type->isArrayType()) return in.types.held_mark(type);
    // A reference, or an element taken apart: &array[0], &*p.
    const clang::QualType to = type->getPointeeType();
    return to.isNull() ? nullptr : in.types.held_mark(to);
}

// Marked fields by their places in a record, those of its members, bases and arrays, too. `end`: only those that
// begin before it.
using places = std::map<std::uint64_t, const clang::FieldDecl*>; // bytes
void find_places(unit& in, clang::QualType type, std::uint64_t at, std::uint64_t end,
                 const clang::FieldDecl* mark, places& found) {
    if (at >= end) return;
    if (const auto* array = in.ast.getAsConstantArrayType(type)) {
        const auto element = in.ast.getTypeSizeInChars(array->getElementType()).getQuantity();
        for (std::uint64_t i = 0; i < array->getSize().getZExtValue(); ++i) {
            const std::uint64_t next = at + i * static_cast<std::uint64_t>(element);
            if (next >= end) return;
            find_places(in, array->getElementType(), next, end, mark, found);
        }
        return;
    }
    if (mark != nullptr) {
        found[at] = mark;
        return;
    }
    const auto* record = type->getAsRecordDecl();
    record = record == nullptr ? nullptr : record->getDefinition();
    if (record == nullptr || in.types.held_mark(type) == nullptr) return;
    const auto& layout = in.ast.getASTRecordLayout(record);
    if (const auto* derived = llvm::dyn_cast<clang::CXXRecordDecl>(record))
        for (const auto& base : derived->bases())
            if (!base.isVirtual())
                find_places(in, base.getType(),
                            at + static_cast<std::uint64_t>(
                                     layout.getBaseClassOffset(base.getType()->getAsCXXRecordDecl())
                                         .getQuantity()),
                            end, nullptr, found);
    for (const auto* field : record->fields())
        if (!field->isBitField())
            find_places(in, field->getType(),
                        at + layout.getFieldOffset(field->getFieldIndex()) / 8, end,
                        in.types.is_marked(field) ? field : nullptr, found);
}

// A marked field of the one type where the other has none, in what the two have in common.
const clang::FieldDecl* mark_of_one(unit& in, clang::QualType one, clang::QualType other) {
    const auto is_whole = [](clang::QualType type) {
        const auto* record = type->getAsRecordDecl();
        return record != nullptr && record->getDefinition() != nullptr && !record->isUnion() &&
               !record->isInvalidDecl() && !type->isDependentType();
    };
    if (!is_whole(one) || !is_whole(other)) return nullptr;
    const auto end = static_cast<std::uint64_t>(
        std::min(in.ast.getTypeSizeInChars(one), in.ast.getTypeSizeInChars(other)).getQuantity());
    places of_one, of_other;
    find_places(in, one, 0, end, nullptr, of_one);
    find_places(in, other, 0, end, nullptr, of_other);
    for (const auto& [at, mark] : of_one)
        if (!of_other.contains(at)) return mark;
    for (const auto& [at, mark] : of_other)
        if (!of_one.contains(at)) return mark;
    return nullptr;
}

// node + 1, for a pointer: where the next one would be. Any other distance is an element of an array.
bool is_behind(unit& in, const clang::Expr* argument) {
    const auto* sum = llvm::dyn_cast<clang::BinaryOperator>(argument->IgnoreParenCasts());
    if (sum == nullptr || sum->getOpcode() != clang::BO_Add || !sum->getType()->isPointerType() ||
        sum->getLHS()->IgnoreParenImpCasts()->getType()->isArrayType() ||
        sum->getRHS()->isValueDependent())
        return false;
    clang::Expr::EvalResult distance;
    return sum->getRHS()->EvaluateAsInt(distance, in.ast) && distance.Val.getInt() == 1;
}

bool is_zero(unit& in, const clang::Expr* value) {
    clang::Expr::EvalResult result;
    return !value->isValueDependent() && value->EvaluateAsInt(result, in.ast) &&
           result.Val.getInt().isZero();
}

} // namespace

void check_byte_function(unit& in, const clang::CallExpr* call) {
    const auto* callee = call->getDirectCallee();
    if (callee == nullptr || callee->getIdentifier() == nullptr) return;
    // A function of the program may have the same name.
    if (callee->getBuiltinID() == 0 && !callee->isExternC() && !callee->isInStdNamespace()) return;

    const llvm::StringRef name = base_name(callee->getName());
    byte_function what = look_up(name);
    if (name == "memset" && call->getNumArgs() >= 2 && !is_zero(in, call->getArg(1)))
        what = {{0}, "writes something other than zeros over", "set the fields one by one"};
    for (const unsigned index : what.memory) {
        if (index >= call->getNumArgs()) return;
        const auto* mark = mark_at(in, call->getArg(index));
        if (mark == nullptr) continue;
        // Data behind the struct, unless it comes from another such place: elements of an array.
        const auto comes_from_slots = [&](unsigned other) {
            return other != index && other < call->getNumArgs() &&
                   mark_at(in, call->getArg(other)) != nullptr;
        };
        if (!name.starts_with("qsort") && is_behind(in, call->getArg(index)) &&
            llvm::none_of(what.memory, comes_from_slots))
            continue;
        in.refuse_for(mark, call->getExprLoc(), "bytes",
                      "'" + name.str() + "' " + what.does + " the marked field " + quoted(mark),
                      what.instead);
        return;
    }
}

void check_cast(unit& in, const clang::ExplicitCastExpr* cast) {
    const clang::Expr* from = cast->getSubExpr()->IgnoreParenCasts();
    const clang::QualType to = cast->getType();
    if (to->isDependentType() || from->getType()->isDependentType()) return;

    if (cast->getCastKind() == clang::CK_LValueBitCast) {
        const auto* mark = slot_named(from, in.types);
        if (mark == nullptr) mark = in.types.held_mark(from->getType());
        if (mark != nullptr)
            in.refuse_for(mark, cast->getExprLoc(), "cast",
                          "the marked field " + quoted(mark) + " is looked at as a " +
                              quoted(to, in.ast),
                          "use the field itself; its word is not always the address");
        return;
    }
    if (const auto* mark = slot_address(from, in.types)) {
        // Another pointer to a pointer sees the same kind of word, and the passes follow it.
        const bool same = to->isVoidPointerType() ||
                          (to->isPointerType() && to->getPointeeType()->isAnyPointerType());
        if (!same && (to->isPointerType() || to->isIntegerType()))
            in.refuse_for(mark, cast->getExprLoc(), "cast",
                          "the address of the slot " + quoted(mark) + " becomes a " +
                              quoted(to, in.ast),
                          "use the field itself; its word is not always the address");
        return;
    }
    if (!from->getType()->isPointerType() && !from->getType()->isArrayType()) return;
    if (!to->isPointerType()) return;
    if (cast->getCastKind() == clang::CK_BitCast && from->getType()->isPointerType()) {
        const clang::QualType seen = from->getType()->getPointeeType();
        if (const auto* mark = mark_of_one(in, seen, to->getPointeeType()))
            in.refuse_for(mark, cast->getExprLoc(), "cast",
                          quoted(seen, in.ast) + " is looked at as " +
                              quoted(to->getPointeeType(), in.ast) +
                              ", and only one of them has the marked field " + quoted(mark),
                          "mark the field in both, or make the one the other's first member");
    }
    // The same for (void**)node.
    if (!to->getPointeeType()->isArithmeticType() && !to->getPointeeType()->isAnyPointerType())
        return;
    if (is_behind(in, from)) return;
    const auto* mark = mark_at(in, from);
    if (mark != nullptr)
        in.refuse_for(mark, cast->getExprLoc(), "cast",
                      "a struct with the marked field " + quoted(mark) + " is looked at as " +
                          quoted(to->getPointeeType(), in.ast),
                      "name the fields; for data behind the struct, declare an array as its last "
                      "member");
}

void check_bit_cast(unit& in, const clang::BuiltinBitCastExpr* cast) {
    const auto* mark = in.types.held_mark(cast->getType());
    if (mark == nullptr) mark = in.types.held_mark(cast->getSubExpr()->getType());
    if (mark == nullptr) mark = slot_named(cast->getSubExpr()->IgnoreImpCasts(), in.types);
    if (mark == nullptr) return;
    in.refuse_for(mark, cast->getExprLoc(), "cast",
                  "a bit cast reads or makes the bytes of the marked field " + quoted(mark),
                  "build the other object from the fields");
}

} // namespace obase::frontend
