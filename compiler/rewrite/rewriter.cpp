// SPDX-License-Identifier: MIT
#include "rewriter.hpp"

#include "compiler/frontend/annotations.hpp"

#include "slot_flow.hpp"
#include "walk.hpp"

#include "clang/AST/Attr.h"
#include "clang/AST/Mangle.h"
#include "clang/AST/TypeLoc.h"
#include "clang/Basic/SourceManager.h"
#include "clang/Lex/Lexer.h"
#include "llvm/ADT/StringSwitch.h"

#include <optional>
#include <set>
#include <string>

namespace obase::rewrite {

namespace {

using frontend::quoted;

bool in_name(char c) { return clang::isAsciiIdentifierContinue(static_cast<unsigned char>(c)); }
bool ends_with_name(llvm::StringRef text) { return !text.empty() && in_name(text.back()); }
bool begins_with_name(llvm::StringRef text) { return !text.empty() && in_name(text.front()); }

// Fills the graph.
class collector : public walk<collector> {
  public:
    collector(frontend::unit& in, slot_flow& flow) : in_(in), flow_(flow) {}

    void meet_function(const clang::FunctionDecl* f) {
        const auto* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(f);
        if (constructor == nullptr || !f->doesThisDeclarationHaveABody()) return;
        for (const auto* initializer : constructor->inits())
            if (initializer->isAnyMemberInitializer() &&
                in_.types.is_marked(initializer->getAnyMember()))
                flow_.stored(initializer->getInit(), f);
    }

    void meet(const clang::Stmt* statement) {
        if (const auto* declarations = llvm::dyn_cast<clang::DeclStmt>(statement)) {
            for (const auto* declaration : declarations->decls())
                if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(declaration))
                    if (variable->hasInit()) flow_.gives(variable, variable->getInit(), function());
        } else if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(statement)) {
            if (op->getOpcode() != clang::BO_Assign) return;
            const clang::Expr* to = bare(op->getLHS());
            if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(to);
                name != nullptr && !name->getDecl()->getType()->isReferenceType())
                flow_.gives(name->getDecl(), op->getRHS(), function());
            else
                maybe_stored(to, op->getRHS());
        } else if (const auto* result = llvm::dyn_cast<clang::ReturnStmt>(statement)) {
            if (result->getRetValue() != nullptr && function() != nullptr)
                flow_.gives(function(), result->getRetValue(), function());
        } else if (const auto* construct = llvm::dyn_cast<clang::CXXConstructExpr>(statement)) {
            for (unsigned i = 0; i < construct->getNumArgs(); ++i)
                argument(construct->getConstructor(), i, construct->getArg(i));
        } else if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(statement)) {
            if (const auto* named = llvm::dyn_cast<clang::FunctionDecl>(name->getDecl()))
                flow_.names(named);
        } else if (const auto* list = llvm::dyn_cast<clang::InitListExpr>(statement)) {
            aggregate(list);
        } else if (const auto* call = llvm::dyn_cast<clang::CallExpr>(statement)) {
            meet_call(call);
        }
    }

    // Stores through a pointer that turned out to be a slot's address.
    void solve() {
        flow_.solve();
        for (const auto& [to, from] : maybe_)
            if (flow_.is_slot(to)) flow_.stored(from.value, from.in);
    }

  private:
    void maybe_stored(const clang::Expr* to, const clang::Expr* value) {
        maybe_.push_back({to, {value, function()}});
    }

    void argument(const clang::FunctionDecl* callee, unsigned index, const clang::Expr* value) {
        if (callee == nullptr || index >= callee->getNumParams()) return;
        flow_.gives(callee->getParamDecl(index), value, function());
    }

    void aggregate(const clang::InitListExpr* list) {
        // As it is meant, with an element for each field.
        if (!list->isSemanticForm()) list = list->getSemanticForm();
        const auto* record = list == nullptr ? nullptr : frontend::record_of(list->getType());
        if (record == nullptr) return;
        unsigned i = 0;
        if (const auto* whole = llvm::dyn_cast<clang::CXXRecordDecl>(record))
            i = whole->getNumBases();
        for (const auto* field : record->fields()) {
            if (field->isUnnamedBitField()) continue;
            if (i >= list->getNumInits()) break;
            if (in_.types.is_marked(field)) flow_.stored(list->getInit(i), function());
            ++i;
        }
    }

    void meet_call(const clang::CallExpr* call) {
        if (call->getDirectCallee() != nullptr) flow_.calls(call->getDirectCallee(), function());
        if (const auto* op = llvm::dyn_cast<clang::CXXOperatorCallExpr>(call)) {
            const auto* method =
                llvm::dyn_cast_or_null<clang::CXXMethodDecl>(op->getDirectCallee());
            if (op->getOperator() == clang::OO_Equal && op->getNumArgs() == 2) {
                const clang::Expr* to = bare(op->getArg(0));
                if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(to);
                    name != nullptr && !name->getDecl()->getType()->isReferenceType())
                    flow_.gives(name->getDecl(), op->getArg(1), function());
                else
                    maybe_stored(to, op->getArg(1));
            }
            // The first argument is the object.
            for (unsigned i = method != nullptr ? 1 : 0; i < op->getNumArgs(); ++i)
                argument(op->getDirectCallee(), method != nullptr ? i - 1 : i, op->getArg(i));
            return;
        }
        for (unsigned i = 0; i < call->getNumArgs(); ++i)
            argument(call->getDirectCallee(), i, call->getArg(i));
        if (const auto* member = llvm::dyn_cast<clang::CXXMemberCallExpr>(call)) {
            // store, exchange, compare_exchange, reset
            if (kind_of(member->getImplicitObjectArgument()->getType()) != slot_kind::other)
                for (const auto* argument : member->arguments())
                    if (argument->getType()->isPointerType())
                        maybe_stored(member->getImplicitObjectArgument(), argument);
        } else if (standard_callee(call) == "exchange" && call->getNumArgs() == 2) {
            maybe_stored(call->getArg(0), call->getArg(1));
        }
    }

    frontend::unit& in_;
    slot_flow& flow_;
    std::vector<std::pair<const clang::Expr*, slot_flow::source>> maybe_;
};

class changer : public walk<changer> {
  public:
    changer(frontend::unit& in, slot_flow& flow, places& where, const manner& how)
        : in_(in), flow_(flow), where_(where), how_(how), sources_(in.ast.getSourceManager()) {}

    void meet_function(const clang::FunctionDecl* f);
    void meet(const clang::Stmt* statement);
    void change_fields();
    void change_classes();
    bool VisitCXXRecordDecl(clang::CXXRecordDecl* record);
    void change_carriers();
    void change_allocations();

  private:
    static const clang::CXXMethodDecl* own_allocation(const clang::CXXRecordDecl* record);
    bool has_slots(const clang::CXXRecordDecl* record) const;
    void change_class(const clang::CXXRecordDecl* record, const std::string& text);
    std::optional<place> brace_of(const clang::CXXRecordDecl* record);
    std::string destruction(const clang::CXXRecordDecl* record);
    bool owns_slots(const clang::CXXRecordDecl* record, bool by_pointer,
                    std::set<const clang::CXXRecordDecl*>& seen);
    void end_late(const clang::CXXRecordDecl* record);
    std::string name_of(const clang::CXXRecordDecl* definition, const place& brace);
    bool change_allocation(const clang::Expr* value, const place* copy);
    void change_maker(const clang::FunctionDecl* maker);
    bool has_twin(const clang::FunctionDecl* maker);
    void declare_twin(const clang::FunctionDecl* maker, const std::string& declaration);
    void write_twin(const clang::FunctionDecl* maker, const place& name,
                    const std::string& declaration);
    std::string twin_name(const place& name) const {
        return "obase_managed_" + where_.text(name).str();
    }

    // The nearest statement around the one that is met, without parentheses; from there outwards.
    const clang::Stmt* parent(unsigned& index) const {
        while (index > 0) {
            const clang::Stmt* at = above()[--index];
            if (!llvm::isa<clang::ParenExpr>(at)) return at;
        }
        return nullptr;
    }

    void refuse(clang::SourceLocation at, const std::string& what, const std::string& advice) {
        in_.says.refuse(at, "rewrite", what, advice);
    }
    void refuse_macro(clang::SourceRange at, const char* what) {
        if (!where_.may_change(at.getBegin())) {
            refuse(sources_.getExpansionLoc(at.getBegin()),
                   std::string(what) + " is in a file that is not below --root",
                   "give a root that all sources with marked fields are below of");
            return;
        }
        refuse(at.getBegin(), std::string(what) + " is written by a macro",
               "write it without the macro, or make an inline function of the macro");
    }
    std::optional<place> written(clang::SourceRange at, const char* what) {
        auto found = where_.of(at);
        if (!found) refuse_macro(at, what);
        return found;
    }

    // Takes the text away, except for its line ends: lines keep their numbers.
    void remove(const std::string& path, unsigned begin, unsigned end,
                const std::string& put = {}) {
        if (begin >= end && put.empty()) return;
        std::string kept = put;
        const llvm::StringRef text = where_.file_text({path, begin, end}).slice(begin, end);
        // A comment stays, too.
        if (text.contains("//") || text.contains("/*")) {
            refuse(sources_.getLocForStartOfFile(sources_.getMainFileID()),
                   "a comment stands within an access of a marked field", "put it before the line");
            return;
        }
        for (const char c : text)
            if (c == '\n') kept += c;
        where_.change().replace(path, begin, end, kept);
    }

    // Behind a brace; on a line of its own where lines need not stay what they are.
    void insert_behind(const place& brace, const std::string& text) {
        const llvm::StringRef rest = where_.file_text(brace).drop_front(brace.end);
        std::string put = " ";
        if (!how_.lines && rest.starts_with("\n"))
            put = ("\n" + rest.drop_front().take_while([](char c) {
                      return c == ' ' || c == '\t';
                  })).str();
        where_.change().wrap(brace.path, brace.end, brace.end, put + text, "");
    }

    void change_access(const clang::Expr* slot);
    void change_address(const clang::Expr* address);
    void write_address(const clang::Expr* address);
    void change_variables(const clang::DeclStmt* statement);
    void check_initial_values(const clang::InitListExpr* list);
    void bind(const clang::Expr* slot, const clang::Stmt* around);
    void change_load(const clang::Expr* slot, unsigned parent_index);
    void change_null_test(const clang::Expr* slot, const clang::Expr* whole, bool null);
    void change_store(const clang::Expr* slot, const clang::BinaryOperator* store);
    void change_atomic(const clang::AtomicExpr* builtin);
    void change_free(const clang::DeclRefExpr* name);
    void change_clearing(const clang::CallExpr* call);
    void change_type(clang::TypeLoc type, slot_kind kind, clang::SourceLocation at);
    bool in_c() const { return !in_.ast.getLangOpts().CPlusPlus; }
    // The function with this name for the slot. In C, the types of slots are all different, so those
    // that are reached through a variable are given by their address: *link becomes link.
    std::string of_slot(const std::string& function, const clang::Expr* slot) {
        if (!in_c() || !flow_.is_reached(slot)) return function;
        if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(bare(slot))) {
            const auto star = written(op->getOperatorLoc(), "an access of a marked field");
            if (star) where_.change().replace(star->path, star->begin, star->end, "");
        } else if (const auto at = written(bare(slot)->getSourceRange(), "an access of a slot")) {
            where_.change().wrap(at->path, at->begin, at->end, "&", "");
        }
        return function + "_at";
    }
    // Refuses what needs a scope and runs where OBASE_OPERATION cannot stand before it.
    void check_scope(const clang::Expr* at, const std::string& does) {
        const bool constructs = function() != nullptr;
        if (constructs &&
            !(in_initializer() && in_.roles.role_of(function()) == frontend::role::entry))
            return;
        refuse(
            at->getExprLoc(),
            (constructs
                 ? "a constructor " + does + " before its body"
                 : "a default argument or the initializer of a field or global variable " + does) +
                ", where no scope is open",
            "do it in a function's body; a constructor that only operations call may be "
            "OBASE_INTERNAL");
    }
    void check_callee(const clang::Expr* at, const clang::FunctionDecl* callee) {
        if (in_.roles.role_of(callee) == frontend::role::internal)
            check_scope(at, "calls " + quoted(callee) + ", a part of operations");
    }
    // `function` is called with the slot: (*link)->key becomes obase_slot_load(*link)->key.
    void call_on(const clang::Expr* slot, const std::string& function) {
        if (function == "obase_slot_load") check_scope(slot, "loads a marked field");
        const auto* around =
            above().empty() ? nullptr : llvm::dyn_cast<clang::ParenExpr>(above().back());
        const auto at =
            written(around != nullptr ? around->getSourceRange() : slot->getSourceRange(),
                    "an access of a marked field");
        if (!at) return;
        const std::string name = of_slot(function, slot);
        if (around != nullptr)
            where_.change().wrap(at->path, at->begin, at->end, name, "");
        else
            where_.change().wrap(at->path, at->begin, at->end, name + "(", ")");
    }
    bool is_condition(const clang::Expr* value, const clang::Stmt* of) const;
    bool is_null(const clang::Expr* value) const {
        return value->isNullPointerConstant(in_.ast, clang::Expr::NPC_ValueDependentIsNotNull) !=
               clang::Expr::NPCK_NotNull;
    }
    bool opens_scope(const clang::FunctionDecl* f) const;
    // The function of obase/marked.h.
    std::string runtime_name(llvm::StringRef name) const {
        return ((how_.on == protocol::atc ? "obase_marked_atc_" : "obase_marked_") + name).str();
    }

    frontend::unit& in_;
    slot_flow& flow_;
    places& where_;
    manner how_;
    clang::SourceManager& sources_;
};

bool changer::is_condition(const clang::Expr* value, const clang::Stmt* of) const {
    const auto is = [&](const clang::Expr* condition) {
        return condition != nullptr && condition->IgnoreParens() == value;
    };
    if (const auto* at = llvm::dyn_cast<clang::IfStmt>(of)) return is(at->getCond());
    if (const auto* at = llvm::dyn_cast<clang::WhileStmt>(of)) return is(at->getCond());
    if (const auto* at = llvm::dyn_cast<clang::DoStmt>(of)) return is(at->getCond());
    if (const auto* at = llvm::dyn_cast<clang::ForStmt>(of)) return is(at->getCond());
    if (const auto* at = llvm::dyn_cast<clang::ConditionalOperator>(of)) return is(at->getCond());
    if (const auto* at = llvm::dyn_cast<clang::BinaryOperator>(of)) return at->isLogicalOp();
    return false;
}

void changer::change_null_test(const clang::Expr* slot, const clang::Expr* whole, bool null) {
    const auto around = written(whole->getSourceRange(), "a comparison of a marked field");
    const auto inner = written(slot->getSourceRange(), "an access of a marked field");
    if (!around || !inner) return;
    where_.change().wrap(around->path, around->begin, around->end,
                         (null ? "" : "!") + of_slot("obase_slot_is_null", slot) + "(", ")");
    remove(around->path, around->begin, inner->begin);
    remove(around->path, inner->end, around->end);
}

void changer::change_load(const clang::Expr* slot, unsigned parent_index) {
    // Through conversions that keep the address.
    const clang::Stmt* load = above()[parent_index];
    const auto* value = llvm::cast<clang::Expr>(load);
    unsigned index = parent_index;
    const clang::Stmt* around = parent(index);
    while (const auto* cast = llvm::dyn_cast_or_null<clang::ImplicitCastExpr>(around)) {
        if (cast->getCastKind() != clang::CK_NoOp && cast->getCastKind() != clang::CK_BitCast &&
            cast->getCastKind() != clang::CK_PointerToBoolean)
            break;
        value = cast;
        around = parent(index);
        if (cast->getCastKind() == clang::CK_PointerToBoolean) break;
    }
    const auto* outer = llvm::dyn_cast_or_null<clang::ImplicitCastExpr>(value);
    const bool boolean = outer != nullptr && outer->getCastKind() == clang::CK_PointerToBoolean;
    const auto* negation = llvm::dyn_cast_or_null<clang::UnaryOperator>(around);
    if (negation != nullptr && negation->getOpcode() == clang::UO_LNot) {
        change_null_test(slot, negation, true);
        return;
    }
    if (boolean || (around != nullptr && is_condition(value, around))) {
        call_on(slot, "!obase_slot_is_null");
        return;
    }
    const auto* comparison = llvm::dyn_cast_or_null<clang::BinaryOperator>(around);
    if (comparison != nullptr && comparison->isEqualityOp()) {
        const clang::Expr* left = comparison->getLHS();
        const clang::Expr* other = left->IgnoreParens() == value ? comparison->getRHS() : left;
        if (is_null(other)) {
            change_null_test(slot, comparison, comparison->getOpcode() == clang::BO_EQ);
            return;
        }
    }
    call_on(slot, "obase_slot_load");
}

void changer::change_store(const clang::Expr* slot, const clang::BinaryOperator* store) {
    const auto whole = written(store->getSourceRange(), "a store into a marked field");
    const auto to = written(slot->getSourceRange(), "a store into a marked field");
    const auto value = written(store->getRHS()->getSourceRange(), "what a marked field gets");
    if (!whole || !to || !value) return;
    where_.change().wrap(whole->path, whole->begin, whole->end,
                         of_slot("obase_slot_store", slot) + "(", ")");
    const llvm::StringRef between = where_.file_text(*whole).slice(to->end, value->begin);
    // `(slot) = value` and `slot = (value)` are whole; `=` and what is around it becomes a comma.
    const std::size_t sign = between.find('=');
    if (sign == llvm::StringRef::npos) {
        refuse(store->getOperatorLoc(),
               "this store into a marked field is not written with =", "write it so");
        return;
    }
    unsigned begin = to->end + static_cast<unsigned>(sign);
    const unsigned end = begin + 1;
    while (begin > to->end && where_.file_text(*whole)[begin - 1] == ' ') --begin;
    remove(whole->path, begin, end, ",");
}

// A reference to the slot is made.
void changer::bind(const clang::Expr* slot, const clang::Stmt* around) {
    const auto advise = "give what the field holds, or the struct, or make it a function that is "
                        "compiled here and that gets marked fields only";
    const auto* call = llvm::dyn_cast_or_null<clang::CallExpr>(around);
    if (call != nullptr) {
        const llvm::StringRef library = standard_callee(call);
        if (library == "exchange" || library == "swap") {
            // std::exchange(slot, value), not an exchange of what is given to it.
            if (library == "exchange" && bare(call->getArg(0)) != bare(slot)) {
                call_on(slot, "obase_slot_load");
                return;
            }
            if (const auto at = written(call->getCallee()->getSourceRange(), "this call"))
                where_.change().replace(at->path, at->begin, at->end,
                                        library == "swap" ? "obase_slot_swap"
                                                          : "obase_slot_exchange");
            return;
        }
    }
    // Which parameter is it?
    const clang::FunctionDecl* callee = nullptr;
    std::optional<unsigned> index;
    const auto look = [&](const clang::FunctionDecl* function, auto arguments, unsigned skip) {
        callee = function;
        unsigned i = 0;
        for (const auto* argument : arguments) {
            if (bare(argument) == bare(slot) && i >= skip) index = i - skip;
            ++i;
        }
    };
    if (call != nullptr) {
        const auto* direct = call->getDirectCallee();
        const bool object = llvm::isa<clang::CXXOperatorCallExpr>(call) &&
                            llvm::isa_and_nonnull<clang::CXXMethodDecl>(direct);
        look(direct, call->arguments(), object ? 1 : 0);
    } else if (const auto* construct = llvm::dyn_cast_or_null<clang::CXXConstructExpr>(around)) {
        look(construct->getConstructor(), construct->arguments(), 0);
    }
    if (callee != nullptr && index && *index < callee->getNumParams()) {
        const auto* parameter = callee->getParamDecl(*index);
        if (gets_value(parameter)) {
            call_on(slot, "obase_slot_load");
            return;
        }
        if (flow_.carries(parameter) && callee->hasBody()) return;
        refuse(slot->getExprLoc(),
               "a reference to a marked field is given to " + quoted(callee) +
                   ", where the rewriter cannot follow it",
               advise);
        return;
    }
    // Returned, or the initializer of a variable: a carrier.
    if (around == nullptr || llvm::isa<clang::ReturnStmt, clang::DeclStmt>(around)) return;
    refuse(slot->getExprLoc(),
           "a reference to a marked field goes where the rewriter cannot follow it", advise);
}

void changer::change_access(const clang::Expr* slot) {
    const bool plain = kind_of(slot->getType()) == slot_kind::plain;
    unsigned index = static_cast<unsigned>(above().size());
    const clang::Stmt* around = parent(index);
    // The same slot, or one of its array, seen from further out.
    const auto* outer = llvm::dyn_cast_or_null<clang::Expr>(around);
    while (const auto* cast = llvm::dyn_cast_or_null<clang::ImplicitCastExpr>(outer)) {
        if (cast->getCastKind() != clang::CK_NoOp) break;
        around = parent(index);
        outer = llvm::dyn_cast_or_null<clang::Expr>(around);
    }
    while (llvm::isa_and_nonnull<clang::FullExpr>(around)) around = parent(index);
    outer = llvm::dyn_cast_or_null<clang::Expr>(around);
    if (const auto* cast = llvm::dyn_cast_or_null<clang::ImplicitCastExpr>(around)) {
        if (cast->getCastKind() == clang::CK_LValueToRValue) {
            if (plain) change_load(slot, index);
            return;
        }
        if (cast->getCastKind() == clang::CK_ArrayToPointerDecay) return; // change_address
    }
    if (!plain) return; // a slot of class type has the members of that class
    if (const auto* either = llvm::dyn_cast_or_null<clang::ConditionalOperator>(around))
        if (either->isGLValue() && flow_.is_slot(either)) return;
    if (const auto* op = llvm::dyn_cast_or_null<clang::BinaryOperator>(around)) {
        if (op->getOpcode() == clang::BO_Assign && bare(op->getLHS()) == slot) {
            change_store(slot, op);
            return;
        }
        if (op->isCompoundAssignmentOp()) {
            refuse(op->getOperatorLoc(), "arithmetic on a marked field", "assign it an object");
            return;
        }
        if (op->isCommaOp()) return; // its value is not used
    }
    if (const auto* op = llvm::dyn_cast_or_null<clang::UnaryOperator>(around)) {
        if (op->getOpcode() == clang::UO_AddrOf) return; // change_address
        refuse(op->getOperatorLoc(), "arithmetic on a marked field", "assign it an object");
        return;
    }
    if (const auto* cast = llvm::dyn_cast_or_null<clang::ExplicitCastExpr>(around)) {
        if (cast->getCastKind() == clang::CK_ToVoid) return;
        refuse(cast->getExprLoc(), "a marked field is looked at as something else",
               "cast the address that it holds");
        return;
    }
    if (llvm::isa_and_nonnull<clang::UnaryExprOrTypeTraitExpr>(around)) return; // sizeof
    // A list as it is written, in which clang notes no loads.
    if (llvm::isa_and_nonnull<clang::InitListExpr, clang::DesignatedInitExpr>(around)) {
        call_on(slot, "obase_slot_load");
        return;
    }
    if (llvm::isa_and_nonnull<clang::CXXForRangeStmt>(around)) return; // change_address
    // A statement by itself has no effect.
    if (outer == nullptr && !llvm::isa_and_nonnull<clang::ReturnStmt, clang::DeclStmt>(around))
        return;
    bind(slot, around);
}

// The address of a slot, or of an array of slots: its users have to be known.
void changer::change_address(const clang::Expr* address) {
    unsigned index = static_cast<unsigned>(above().size());
    const clang::Stmt* around = parent(index);
    while (around != nullptr) {
        const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(around);
        const bool passes = (cast != nullptr && cast->getCastKind() == clang::CK_NoOp) ||
                            llvm::isa<clang::FullExpr, clang::ConditionalOperator>(around) ||
                            (llvm::isa<clang::BinaryOperator>(around) &&
                             llvm::cast<clang::BinaryOperator>(around)->isAdditiveOp());
        if (!passes) break;
        around = parent(index);
    }
    const auto* op = llvm::dyn_cast_or_null<clang::UnaryOperator>(around);
    if (op != nullptr && op->getOpcode() == clang::UO_Deref) return;
    if (llvm::isa_and_nonnull<clang::ArraySubscriptExpr, clang::AtomicExpr, clang::MemberExpr>(
            around))
        return;
    if (in_c()) write_address(address);
    if (const auto* binary = llvm::dyn_cast_or_null<clang::BinaryOperator>(around)) {
        if (binary->isComparisonOp()) return;
        const auto* to = binary->getOpcode() == clang::BO_Assign
                             ? llvm::dyn_cast<clang::DeclRefExpr>(bare(binary->getLHS()))
                             : nullptr;
        if (to != nullptr && flow_.carries(to->getDecl())) return;
    }
    if (llvm::isa_and_nonnull<clang::ReturnStmt, clang::DeclStmt>(around)) return; // carriers
    if (const auto* call = llvm::dyn_cast_or_null<clang::CallExpr>(around))
        if (const auto* callee = call->getDirectCallee())
            for (unsigned i = 0; i < call->getNumArgs() && i < callee->getNumParams(); ++i)
                if (flow_.carries(callee->getParamDecl(i)) &&
                    flow_.is_slot_address(call->getArg(i)) && callee->hasBody())
                    return;
    refuse(address->getExprLoc(),
           "the address of a marked field goes where the rewriter cannot follow it",
           "keep it in a local variable, or give it to a function that is compiled here");
}

// In C: the address of a slot as that of a pointer.
void changer::write_address(const clang::Expr* address) {
    const auto at = written(address->getSourceRange(), "the address of a marked field");
    if (!at) return;
    const auto* op = llvm::dyn_cast<clang::UnaryOperator>(address);
    if (op == nullptr) { // an array
        where_.change().wrap(at->path, at->begin, at->end, "obase_slot_at(", "[0])");
        return;
    }
    if (flow_.is_reached(op->getSubExpr())) return; // &link[1] is right as it is
    const auto sign = written(op->getOperatorLoc(), "the address of a marked field");
    if (!sign) return;
    where_.change().wrap(at->path, at->begin, at->end, "obase_slot_at(", ")");
    where_.change().replace(sign->path, sign->begin, sign->end, "");
}

void changer::change_atomic(const clang::AtomicExpr* builtin) {
    const auto* address = llvm::dyn_cast<clang::UnaryOperator>(bare(builtin->getPtr()));
    if (!flow_.is_slot_address(builtin->getPtr())) return;
    const auto whole = written(builtin->getSourceRange(), "an atomic access of a marked field");
    if (!whole) return;
    const bool amp = address != nullptr && address->getOpcode() == clang::UO_AddrOf;
    // `&n->next` is n->next; in C a variable stays the address that it is.
    const bool by_name = amp && !(in_c() && flow_.is_reached(address->getSubExpr()));
    const clang::Expr* slot = by_name ? address->getSubExpr() : builtin->getPtr();
    const auto to = written(slot->getSourceRange(), "an atomic access of a marked field");
    if (!to) return;
    const std::string open = by_name ? "(" : in_c() ? "_at(" : "(*";
    const auto rename = [&](const char* by) {
        remove(whole->path, whole->begin, to->begin, by + open);
    };
    // Keeps the arguments up to the last that is wanted.
    const auto cut_after = [&](const clang::Expr* last) {
        if (const auto at = written(last->getSourceRange(), "an atomic access of a marked field"))
            remove(whole->path, at->end, whole->end, ")");
    };
    switch (builtin->getOp()) {
    case clang::AtomicExpr::AO__atomic_load_n:
        rename("obase_slot_load");
        cut_after(builtin->getPtr());
        return;
    case clang::AtomicExpr::AO__atomic_store_n:
        rename("(void)obase_slot_exchange");
        cut_after(builtin->getVal1());
        return;
    case clang::AtomicExpr::AO__atomic_exchange_n:
        rename("obase_slot_exchange");
        cut_after(builtin->getVal1());
        return;
    case clang::AtomicExpr::AO__atomic_compare_exchange_n:
        rename("obase_slot_compare_exchange");
        cut_after(builtin->getVal2());
        return;
    default:
        refuse(builtin->getBeginLoc(), "this atomic access of a marked field has no other form",
               "use __atomic_load_n, __atomic_store_n, __atomic_exchange_n or "
               "__atomic_compare_exchange_n");
    }
}

// free and its kind get memory of any origin.
void changer::change_free(const clang::DeclRefExpr* name) {
    if (llvm::isa<clang::VarDecl>(name->getDecl()) &&
        frontend::annotated(name->getDecl(), frontend::guided_text))
        refuse(name->getLocation(),
               "the marked variable " + frontend::quoted(name->getDecl()) + " is no field",
               "put the pointer into a struct and mark it there");
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(name->getDecl());
    if (function == nullptr || function->getIdentifier() == nullptr || !function->isExternC())
        return;
    const char* by = llvm::StringSwitch<const char*>(function->getName())
                         .Cases("free", "cfree", "free")
                         .Case("realloc", "realloc")
                         .Case("malloc_usable_size", "usable_size")
                         .Default(nullptr);
    if (!where_.may_change(name->getBeginLoc())) return;
    if (function->getName() == "reallocarray")
        refuse(name->getLocation(), "reallocarray may get managed memory, and has no other form",
               "call realloc with the product, after a check that it fits");
    if (by == nullptr) return;
    if (const auto at = written(name->getSourceRange(), "a call that frees"))
        where_.change().replace(at->path, at->begin, at->end, runtime_name(by));
}

// Memory in which there may be slots is filled with zeros.
void changer::change_clearing(const clang::CallExpr* call) {
    const auto* callee = call->getDirectCallee();
    if (callee == nullptr || callee->getIdentifier() == nullptr || call->getNumArgs() < 2) return;
    llvm::StringRef name = callee->getName();
    name.consume_front("__builtin_");
    const char* by = llvm::StringSwitch<const char*>(name)
                         .Case("memset", "obase_slots_memset")
                         .Cases("bzero", "explicit_bzero", "obase_slots_bzero")
                         .Default(nullptr);
    if (by == nullptr || !(callee->isExternC() || callee->getBuiltinID() != 0)) return;
    const clang::QualType to = call->getArg(0)->IgnoreParenCasts()->getType();
    const clang::QualType what = to->isPointerType() ? to->getPointeeType() : to;
    const bool marked = in_.types.held_mark(what) != nullptr;
    // The pointee may be anything.
    if (!marked && !(to->isPointerType() && (what->isVoidType() || what->isCharType()))) return;
    const auto at = where_.of(call->getCallee()->getSourceRange());
    if (at)
        where_.change().replace(at->path, at->begin, at->end, by);
    else if (marked)
        refuse_macro(call->getCallee()->getSourceRange(), "clearing a struct with marked fields");
}

void changer::meet(const clang::Stmt* statement) {
    if (const auto* call = llvm::dyn_cast<clang::CallExpr>(statement)) change_clearing(call);
    if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(statement)) {
        change_free(name);
        if (const auto* callee = llvm::dyn_cast<clang::FunctionDecl>(name->getDecl()))
            check_callee(name, callee);
    }
    if (const auto* member = llvm::dyn_cast<clang::MemberExpr>(statement))
        if (const auto* callee = llvm::dyn_cast<clang::CXXMethodDecl>(member->getMemberDecl()))
            check_callee(member, callee);
    if (const auto* construct = llvm::dyn_cast<clang::CXXConstructExpr>(statement))
        check_callee(construct, construct->getConstructor());
    if (const auto* builtin = llvm::dyn_cast<clang::AtomicExpr>(statement)) change_atomic(builtin);
    if (const auto* loop = llvm::dyn_cast<clang::CXXForRangeStmt>(statement))
        if (flow_.is_slot(loop->getRangeInit()))
            refuse(loop->getForLoc(), "a loop over an array of marked fields",
                   "count an index, and name the field with it");
    if (const auto* closure = llvm::dyn_cast<clang::LambdaExpr>(statement))
        for (const auto& capture : closure->captures())
            if (capture.capturesVariable() && capture.getCaptureKind() == clang::LCK_ByCopy &&
                capture.getCapturedVar()->getType()->isReferenceType() &&
                flow_.carries(capture.getCapturedVar()))
                refuse(capture.getLocation(),
                       "a reference to a marked field is captured by copy, which loads it",
                       "load it into a variable, and capture that");
    if (in_c()) {
        if (const auto* list = llvm::dyn_cast<clang::InitListExpr>(statement))
            check_initial_values(list);
        if (const auto* declarations = llvm::dyn_cast<clang::DeclStmt>(statement))
            change_variables(declarations);
    }
    const auto* expression = llvm::dyn_cast<clang::Expr>(statement);
    if (expression == nullptr || bare(expression) != expression) return;
    if (expression->isGLValue() && flow_.is_slot(expression)) {
        if (!expression->getType()->isArrayType()) change_access(expression);
        return;
    }
    const auto* op = llvm::dyn_cast<clang::UnaryOperator>(expression);
    const auto* decay = llvm::dyn_cast<clang::ImplicitCastExpr>(expression);
    if ((op != nullptr && op->getOpcode() == clang::UO_AddrOf && flow_.is_slot(op->getSubExpr())) ||
        (decay != nullptr && decay->getCastKind() == clang::CK_ArrayToPointerDecay &&
         flow_.is_slot(decay->getSubExpr())))
        change_address(expression);
}

// In C a slot has no initializer: only null initializers need no rewrite.
void changer::check_initial_values(const clang::InitListExpr* list) {
    if (!list->isSemanticForm()) list = list->getSemanticForm();
    const auto* record = list == nullptr ? nullptr : frontend::record_of(list->getType());
    if (record == nullptr || list->getType()->isArrayType()) return;
    unsigned i = 0;
    for (const auto* field : record->fields()) {
        if (field->isUnnamedBitField()) continue;
        if (i >= list->getNumInits()) return;
        const clang::Expr* value = list->getInit(i++);
        if (in_.types.is_marked(field) && !llvm::isa<clang::ImplicitValueInitExpr>(value) &&
            !field->getType()->isArrayType() && !is_null(value))
            refuse(value->getExprLoc(), quoted(field) + " gets a value in an initializer",
                   "begin with null, and assign the value");
    }
}

// In C slots in a variable end with it by a line of their own.
void changer::change_variables(const clang::DeclStmt* statement) {
    std::string ends;
    for (const auto* declaration : statement->decls()) {
        const auto* variable = llvm::dyn_cast<clang::VarDecl>(declaration);
        if (variable != nullptr && variable->hasLocalStorage() &&
            in_.types.held_mark(variable->getType()) != nullptr)
            ends += " OBASE_SLOTS_END(" + variable->getNameAsString() + ");";
    }
    if (ends.empty()) return;
    if (above().empty() || !llvm::isa<clang::CompoundStmt>(above().back())) {
        refuse(statement->getBeginLoc(),
               "a variable with marked fields is declared within a statement", "declare it before");
        return;
    }
    if (const auto at = written(statement->getSourceRange(), "a variable with marked fields"))
        where_.change().wrap(at->path, at->end, at->end, ends, "");
}

// Does it reach slots? One that calls nothing of interest needs no scope.
bool changer::opens_scope(const clang::FunctionDecl* f) const {
    const auto found = in_.roles.all().find(f->getCanonicalDecl());
    if (found == in_.roles.all().end() || found->second.is == frontend::role::internal)
        return false;
    // Also one that is no operation by its author's word, and names a marked field all the same.
    if (found->second.needs_scope) return !f->isMain() || found->second.is == frontend::role::entry;
    if (found->second.is != frontend::role::entry) return false;
    for (const auto& use : found->second.uses) {
        if (!use.call || use.of->isImplicit()) continue;
        if (in_.roles.role_of(use.of) == frontend::role::internal) return true;
        if (!use.of->hasBody() && use.of->getBuiltinID() == 0 &&
            !frontend::of_standard_library(use.of) &&
            !sources_.isInSystemHeader(use.of->getLocation()))
            return true;
    }
    return false;
}

void changer::meet_function(const clang::FunctionDecl* f) {
    if (is_maker(f)) change_maker(f);
    if (!f->doesThisDeclarationHaveABody() || !opens_scope(f)) return;
    const auto* body = llvm::dyn_cast<clang::CompoundStmt>(f->getBody());
    if (body == nullptr) {
        refuse(f->getLocation(), quoted(f) + " is an operation and its body is a try block",
               "put the try block into the body");
        return;
    }
    if (f->isConstexprSpecified()) {
        refuse(f->getLocation(), quoted(f) + " is an operation, which cannot be constexpr",
               "leave constexpr out");
        return;
    }
    const auto at = written(body->getLBracLoc(), "the body of an operation");
    if (!at) return;
    const auto* destructor = llvm::dyn_cast<clang::CXXDestructorDecl>(f);
    insert_behind(*at, destructor != nullptr ? destruction(destructor->getParent())
                                             : "OBASE_OPERATION;");
}

// How a destructor begins that is an operation. Members and bases end after its body, and their slots may
// hold what the body has freed.
std::string changer::destruction(const clang::CXXRecordDecl* record) {
    const bool instance = record->getTemplateInstantiationPattern() != nullptr;
    std::set<const clang::CXXRecordDecl*> seen;
    const bool elsewhere = owns_slots(record, false, seen);
    const bool inside = in_.types.held_mark(in_.ast.getRecordType(record)) != nullptr;
    // All instances of a template are one text.
    if (record->isUnion() || (!instance && !inside && !elsewhere)) return "OBASE_OPERATION;";
    if (!record->isAggregate()) {
        end_late(record);
        return "OBASE_DESTRUCTION;";
    }
    // One more base would come before the values that it is given.
    if (elsewhere)
        refuse(record->getLocation(),
               quoted(record) +
                   ", whose destructor is an operation, is an aggregate with marked fields in the "
                   "memory of its members",
               "give it a constructor");
    return "OBASE_DESTRUCTION_OF_AGGREGATE;";
}

// Does what ends with an object of the class, after its destructor's body, free memory with slots in it? The
// class's own pointers do not.
bool changer::owns_slots(const clang::CXXRecordDecl* record, bool by_pointer,
                         std::set<const clang::CXXRecordDecl*>& seen) {
    record = record != nullptr ? record->getDefinition() : nullptr;
    if (record == nullptr || !seen.insert(record).second) return false;
    const auto reaches = [&](clang::QualType type, bool through) {
        for (;;) {
            if (const auto* array = in_.ast.getAsArrayType(type))
                type = array->getElementType();
            else if (through && type->isPointerType())
                type = type->getPointeeType();
            else
                break;
        }
        const auto* other = type->getAsCXXRecordDecl();
        return (through && in_.types.held_mark(type) != nullptr) || owns_slots(other, true, seen);
    };
    if (const auto* special = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(record);
        special != nullptr && by_pointer)
        for (const auto& argument : special->getTemplateArgs().asArray())
            if (argument.getKind() == clang::TemplateArgument::Type &&
                reaches(argument.getAsType(), true))
                return true;
    for (const auto& one : record->bases())
        if (reaches(one.getType(), false)) return true;
    for (const auto* field : record->fields())
        if (!in_.types.is_marked(field) && reaches(field->getType(), by_pointer)) return true;
    return false;
}

// By a base, the first, which is destroyed last. One that is empty, so places and sizes stay.
void changer::end_late(const clang::CXXRecordDecl* record) {
    const auto* pattern = record->getTemplateInstantiationPattern();
    const auto* definition = pattern != nullptr ? pattern : record;
    const auto brace = brace_of(record);
    if (!brace) return;
    const auto name = name_of(definition, *brace);
    if (name.empty()) {
        refuse(
            record->getLocation(),
            quoted(record) +
                " has a destructor that is an operation, and a template parameter without a name",
            "name the parameter");
        return;
    }
    const std::string first = "obase::destroyed_in_operation<" + name + ">";
    if (definition->getNumBases() == 0) {
        where_.change().wrap(brace->path, brace->begin, brace->begin, ": " + first + " ", "");
    } else if (const auto at = written(definition->bases_begin()->getBeginLoc(), "a base class")) {
        where_.change().wrap(at->path, at->begin, at->begin, first + ", ", "");
    }
}

// The class as it is named within its own head; empty if it cannot be.
std::string changer::name_of(const clang::CXXRecordDecl* definition, const place& brace) {
    if (llvm::isa<clang::ClassTemplateSpecializationDecl>(definition)) {
        // As its author wrote it, up to the bases.
        const auto at = written(definition->getLocation(), "a class");
        if (!at) return {};
        llvm::StringRef text = where_.file_text(*at).slice(at->begin, brace.begin);
        if (definition->getNumBases() != 0) {
            const auto first = where_.of_token(definition->bases_begin()->getBeginLoc());
            if (!first) return {};
            text = text.take_front(first->begin - at->begin).rsplit(':').first;
        }
        text = text.rtrim();
        if (text.consume_back("final")) text = text.rtrim();
        return text.str();
    }
    const auto* described = definition->getDescribedClassTemplate();
    if (described == nullptr)
        return (definition->getKindName() + " " + definition->getName()).str();
    std::string name = definition->getNameAsString() + "<";
    for (const auto* parameter : *described->getTemplateParameters()) {
        if (parameter->getName().empty()) return {};
        if (name.back() != '<') name += ", ";
        name += parameter->getName().str() + (parameter->isParameterPack() ? "..." : "");
    }
    return name + ">";
}

void changer::change_type(clang::TypeLoc type, slot_kind kind, clang::SourceLocation at) {
    while (const auto array = type.getUnqualifiedLoc().getAs<clang::ArrayTypeLoc>())
        type = array.getElementLoc();
    type = type.getUnqualifiedLoc();
    // A parameter of a template is what its arguments say.
    if (type.getAs<clang::SubstTemplateTypeParmTypeLoc>() || type.getAs<clang::AutoTypeLoc>())
        return;
    auto range = written(type.getSourceRange(), "the type of a marked field");
    if (!range) return;
    const llvm::StringRef text = where_.file_text(*range);
    if (kind == slot_kind::plain) {
        // clang's range of `const node*` begins at `node`.
        for (;;) {
            llvm::StringRef before = text.take_front(range->begin).rtrim(" \t");
            const bool qualifies = before.consume_back("const") && !ends_with_name(before);
            if (!qualifies) break;
            range->begin = static_cast<unsigned>(before.size());
        }
    }
    if (text.slice(range->begin, range->end).contains('\n')) {
        refuse(at, "the type of a marked field is written on several lines", "write it on one");
        return;
    }
    const bool glued = begins_with_name(text.drop_front(range->end));
    where_.change().wrap(range->path, range->begin, range->end, "OBASE_SLOT(", glued ? ") " : ")");
}

void changer::change_fields() {
    for (const auto* field : in_.types.marks()) {
        const slot_kind kind = [&] {
            clang::QualType type = field->getType();
            while (const auto* array = in_.ast.getAsArrayType(type)) type = array->getElementType();
            return kind_of(type);
        }();
        if (kind == slot_kind::other) {
            refuse(field->getLocation(),
                   quoted(field) + " has a type that the rewriter has no slot for",
                   "declare a plain pointer, std::atomic of one, or std::unique_ptr");
            continue;
        }
        for (const auto* other : field->getParent()->fields())
            if (other != field && other->getTypeSpecStartLoc() == field->getTypeSpecStartLoc()) {
                refuse(field->getLocation(),
                       quoted(field) + " is declared together with another field",
                       "declare each marked field by itself");
                return;
            }
        if (frontend::annotated(field, frontend::elements_text))
            refuse(field->getLocation(),
                   "the elements of the array that " + frontend::quoted(field) +
                       " points to are slots, and the rewriter knows only those in structs",
                   "have an array of structs with one marked field each");
        change_type(field->getTypeSourceInfo()->getTypeLoc(), kind, field->getLocation());
        // The mark has done its work. One that the marks file or an attribute made stays: other
        // compilers do not see it.
        for (const auto* mark : field->specific_attrs<clang::AnnotateAttr>()) {
            if (mark->isImplicit() || !mark->getLocation().isMacroID()) continue;
            const auto at = where_.of_token(sources_.getExpansionLoc(mark->getLocation()));
            if (!at || where_.text(*at) != "OBASE_GUIDED") continue;
            const llvm::StringRef before = where_.file_text(*at).take_front(at->begin);
            const bool space = before.ends_with(" ");
            where_.change().replace(at->path, at->begin - (space ? 1 : 0), at->end, "");
        }
    }
}

// Those that marked fields point to.
void changer::change_classes() {
    if (in_c()) return;
    for (const auto* field : in_.types.marks()) {
        const clang::QualType to = frontend::marked_types::pointee(field);
        const auto* record = to.isNull() ? nullptr : to->getAsCXXRecordDecl();
        if (record == nullptr || !record->hasDefinition()) continue;
        record = record->getDefinition();
        if (!where_.may_change(record->getLocation())) continue;
        if (const auto* own = own_allocation(record))
            refuse(own->getLocation(),
                   quoted(record) + ", to which marked fields point, allocates by itself",
                   "leave operator new and operator delete out, or do not mark the fields");
        change_class(record, has_slots(record) ? "OBASE_MANAGED_NEW" : "OBASE_MANAGED_CLASS");
    }
}

// Those with slots in them.
bool changer::VisitCXXRecordDecl(clang::CXXRecordDecl* record) {
    if (record->isThisDeclarationADefinition() && !record->isLambda() && !record->isUnion() &&
        !record->isDependentContext() && where_.may_change(record->getLocation()) &&
        has_slots(record) && own_allocation(record) == nullptr)
        change_class(record, "OBASE_SLOTTED_CLASS");
    return true;
}

const clang::CXXMethodDecl* changer::own_allocation(const clang::CXXRecordDecl* record) {
    for (const auto* method : record->methods()) switch (method->getOverloadedOperator()) {
        case clang::OO_New:
        case clang::OO_Delete:
        case clang::OO_Array_New:
        case clang::OO_Array_Delete:
            return method;
        default:
            break;
        }
    return nullptr;
}

// The same for all who see the class: of a template, the fields that it marks itself, because what else
// its instances hold differs.
bool changer::has_slots(const clang::CXXRecordDecl* record) const {
    if (record->getTemplateInstantiationPattern() == nullptr)
        return in_.types.held_mark(in_.ast.getRecordType(record)) != nullptr;
    return llvm::any_of(record->fields(),
                        [this](const auto* field) { return in_.types.is_marked(field); });
}

std::optional<place> changer::brace_of(const clang::CXXRecordDecl* record) {
    // An explicit instantiation has no braces of its own.
    const auto* pattern = record->getTemplateInstantiationPattern();
    const auto braces = (pattern != nullptr ? pattern : record)->getBraceRange();
    const auto at = where_.of_token(braces.getBegin());
    if (!at)
        refuse(record->getLocation(), quoted(record) + " is written by a macro",
               "write it without the macro");
    return at;
}

void changer::change_class(const clang::CXXRecordDecl* record, const std::string& text) {
    const auto at = brace_of(record);
    if (!at) return;
    insert_behind(*at, record->isClass() ? "public: " + text + " private:" : text);
}

void changer::change_carriers() {
    for (const auto* carrier : flow_.carriers()) {
        for (const auto& from : flow_.strangers(carrier))
            refuse(from.value->getExprLoc(),
                   quoted(carrier) + " is sometimes the address of a marked field, and here of "
                                     "something else",
                   "use two variables or two functions");
        const auto change = [&](const clang::TypeSourceInfo* type, clang::SourceLocation at,
                                clang::QualType what) {
            if (type == nullptr) return;
            clang::TypeLoc loc = type->getTypeLoc().getUnqualifiedLoc();
            if (const auto function = loc.getAsAdjusted<clang::FunctionTypeLoc>())
                loc = function.getReturnLoc().getUnqualifiedLoc();
            clang::TypeLoc pointee;
            if (const auto pointer = loc.getAs<clang::PointerTypeLoc>())
                pointee = pointer.getPointeeLoc();
            else if (const auto reference = loc.getAs<clang::ReferenceTypeLoc>())
                pointee = reference.getPointeeLoc();
            else if (loc.getAs<clang::AutoTypeLoc>())
                return;
            else {
                refuse(at,
                       "the type of " + quoted(carrier) +
                           ", which is about a marked field, is "
                           "hidden by an alias",
                       "write the type, or auto");
                return;
            }
            change_type(pointee, kind_of(what->getPointeeType()), at);
        };
        if (in_c()) { // the type stays
            const auto* owner = llvm::isa<clang::ParmVarDecl>(carrier)
                                    ? llvm::dyn_cast<clang::FunctionDecl>(carrier->getDeclContext())
                                    : llvm::dyn_cast<clang::FunctionDecl>(carrier);
            if (owner != nullptr && owner->isExternallyVisible())
                refuse(carrier->getLocation(),
                       quoted(owner) +
                           " takes or returns the address of a marked field, and C has no "
                           "type by which callers elsewhere would know",
                       "make it static, or let it take the struct");
            continue;
        }
        if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(carrier)) {
            for (const auto* declaration : function->redecls())
                change(declaration->getTypeSourceInfo(), declaration->getLocation(),
                       function->getReturnType());
        } else if (const auto* parameter = llvm::dyn_cast<clang::ParmVarDecl>(carrier)) {
            const auto* taker = llvm::dyn_cast<clang::FunctionDecl>(parameter->getDeclContext());
            if (taker == nullptr) continue;
            for (const auto* declaration : taker->redecls()) {
                const auto* here = declaration->getParamDecl(parameter->getFunctionScopeIndex());
                change(here->getTypeSourceInfo(), here->getLocation(), here->getType());
            }
        } else if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(carrier)) {
            change(variable->getTypeSourceInfo(), variable->getLocation(), variable->getType());
        }
    }
}

void changer::change_allocations() {
    for (const auto& [value, in] : flow_.allocations()) (void)change_allocation(value, nullptr);
}

// False if it is no allocation, or none that can be managed. Within `copy`, only there.
bool changer::change_allocation(const clang::Expr* value, const place* copy) {
    if (!where_.may_change(value->getBeginLoc())) return false;
    const auto put = [&](const std::optional<place>& at, const std::string& text) {
        if (!at) return true; // refused
        if (copy != nullptr)
            where_.change().replace_in_copy(at->path, copy->begin, at->begin, at->end, text);
        else
            where_.change().replace(at->path, at->begin, at->end, text);
        return true;
    };
    if (const auto* fresh = llvm::dyn_cast<clang::CXXNewExpr>(value)) {
        const auto* record = fresh->getAllocatedType()->getAsCXXRecordDecl();
        // What is freed by the class's operator delete, which marked_access.h brings.
        if (fresh->isArray() || fresh->getNumPlacementArgs() != 0 || record == nullptr ||
            !in_.types.is_managed(record) || !where_.may_change(record->getLocation()))
            return false;
        const clang::SourceLocation keyword =
            fresh->isGlobalNew()
                ? clang::Lexer::findNextToken(fresh->getBeginLoc(), sources_, in_.ast.getLangOpts())
                      ->getLocation()
                : fresh->getBeginLoc();
        return put(written(keyword, "an allocation"), "new (obase_managed)");
    }
    const auto* call = llvm::cast<clang::CallExpr>(value);
    const auto* callee = call->getDirectCallee();
    const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(call->getCallee()->IgnoreParenImpCasts());
    if (standard_callee(call) == "make_unique") {
        const clang::QualType made = frontend::type_argument(call->getType()->getAsRecordDecl(), 0);
        const auto* record = made.isNull() ? nullptr : made->getAsCXXRecordDecl();
        if (record == nullptr || !in_.types.is_managed(record) ||
            !where_.may_change(record->getLocation()) || name == nullptr)
            return false;
        const clang::SourceRange range(name->getBeginLoc(), name->getLocation());
        return put(written(range, "an allocation"), "obase::make_unique_managed");
    }
    if (callee != nullptr && name != nullptr && is_maker(callee)) {
        if (llvm::none_of(callee->redecls(),
                          [this](const auto* declared) { return has_twin(declared); }))
            refuse(call->getBeginLoc(),
                   quoted(callee) +
                       " is named by a makes line, and no file below --root declares it "
                       "outside of functions and classes",
                   "declare it so, or give a root that its header is below of");
        const auto at = written(name->getLocation(), "an allocation");
        return put(at, at ? twin_name(*at) : "");
    }
    if (callee == nullptr || callee->getIdentifier() == nullptr || !callee->isExternC())
        return false;
    const char* by = llvm::StringSwitch<const char*>(callee->getName())
                         .Case("malloc", "malloc")
                         .Case("calloc", "calloc")
                         .Case("aligned_alloc", "aligned_alloc")
                         .Default(nullptr);
    if (by == nullptr) return false;
    return put(written(call->getCallee()->getSourceRange(), "an allocation"), runtime_name(by));
}

// Is this a declaration beside which the twin's is written?
bool changer::has_twin(const clang::FunctionDecl* maker) {
    return where_.may_change(maker->getLocation()) &&
           maker->getLexicalDeclContext()->getRedeclContext()->isFileContext();
}

// A maker gets a twin, which returns managed memory: its text once more, under another name.
// Refuses a maker that cannot have a twin.
void changer::change_maker(const clang::FunctionDecl* maker) {
    const auto refuse_twin = [&](const char* because, const char* advice) {
        refuse(maker->getLocation(),
               quoted(maker) + " is named by a makes line, and " + because +
                   ", so no twin of it can be written",
               advice);
    };
    const auto* apart = "let a function of its own allocate, and name that in the makes line";
    if (llvm::isa<clang::CXXMethodDecl>(maker) && where_.may_change(maker->getLocation()))
        return refuse_twin("is a method", apart);
    if (!has_twin(maker)) return; // its callers are told
    if (maker->isTemplateInstantiation()) return refuse_twin("is a template", apart);
    const auto same_name =
        maker->getDeclContext()->getRedeclContext()->lookup(maker->getDeclName());
    if (llvm::any_of(same_name, [&](const clang::NamedDecl* other) {
            return other->getCanonicalDecl() != maker->getCanonicalDecl();
        }))
        return refuse_twin("is overloaded", apart);
    const bool elsewhere = maker->isExternallyVisible();
    if (in_c() && elsewhere && maker->isInlineSpecified())
        return refuse_twin("is inline without being static", "make it static inline");
    for (const auto* declared : maker->decls())
        if (const auto* variable = llvm::dyn_cast<clang::VarDecl>(declared);
            variable != nullptr && variable->isStaticLocal())
            return refuse_twin("has a static variable, of which there would be two",
                               "move the variable out of the function");
    const auto name = written(maker->getLocation(), "the name of a function that makes");
    if (!name) return;
    std::string declaration = "OBASE_STATIC_TWIN(" + where_.text(*name).str() + ");";
    if (elsewhere) {
        const char* macro = in_c() || maker->isExternC() ? "OBASE_C_TWIN(" : "OBASE_TWIN(";
        declaration = macro + where_.text(*name).str() + ", \"" +
                      clang::ASTNameGenerator(in_.ast).getName(maker) + ".obase\");";
    }
    if (maker->doesThisDeclarationHaveABody())
        write_twin(maker, *name, maker->getQualifier() == nullptr ? declaration : "");
    else
        declare_twin(maker, declaration);
}

void changer::declare_twin(const clang::FunctionDecl* maker, const std::string& declaration) {
    clang::SourceLocation end = maker->getEndLoc();
    for (;;) {
        const auto next = clang::Lexer::findNextToken(end, sources_, in_.ast.getLangOpts());
        if (!next || next->is(clang::tok::eof)) {
            refuse_macro(maker->getSourceRange(), "the declaration of a function that makes");
            return;
        }
        end = next->getLocation();
        if (next->is(clang::tok::semi)) break;
    }
    if (const auto at = written(end, "the declaration of a function that makes"))
        where_.change().wrap(at->path, at->end, at->end, " " + declaration, "");
}

void changer::write_twin(const clang::FunctionDecl* maker, const place& name,
                         const std::string& declaration) {
    const auto whole = written(maker->getSourceRange(), "a function that makes");
    if (!whole) return;
    std::vector<const clang::CallExpr*> unknown;
    bool makes = false;
    for (const auto& [value, in] : flow_.made_by(maker, unknown)) {
        const bool here = in != nullptr && in->getCanonicalDecl() == maker->getCanonicalDecl();
        makes = change_allocation(value, here ? &*whole : nullptr) || makes;
    }
    for (const auto* call : unknown) {
        makes = true; // or so it would be
        refuse(call->getBeginLoc(),
               quoted(call->getDirectCallee()) + ", from which " + quoted(maker) +
                   " has what it returns, is named by no makes line",
               "name it in one, too, or allocate here");
    }
    if (!makes)
        refuse(maker->getLocation(),
               quoted(maker) +
                   " is named by a makes line, but nothing that it returns is seen to be "
                   "allocated",
               "name the functions that allocate, down to the one that calls malloc");
    where_.change().replace_in_copy(whole->path, whole->begin, name.begin, name.end,
                                    twin_name(name));
    const llvm::StringRef text = where_.file_text(*whole);
    const auto line = [&](unsigned at) {
        return "\n#line " + std::to_string(1 + text.take_front(at).count('\n')) + "\n";
    };
    if (how_.lines)
        where_.change().copy(whole->path, whole->begin, whole->end,
                             line(whole->begin) + declaration + (declaration.empty() ? "" : " "),
                             line(whole->end));
    else
        where_.change().copy(whole->path, whole->begin, whole->end,
                             "\n\n" + declaration + (declaration.empty() ? "" : "\n"), "");
}

} // namespace

void rewrite_unit(frontend::unit& in, places& where, const manner& how) {
    slot_flow flow(in);
    collector collects(in, flow);
    auto* whole = in.ast.getTranslationUnitDecl();
    collects.TraverseDecl(whole);
    collects.solve();
    changer changes(in, flow, where, how);
    changes.change_fields();
    changes.change_classes();
    changes.change_carriers();
    changes.change_allocations();
    changes.TraverseDecl(whole);
}

} // namespace obase::rewrite
