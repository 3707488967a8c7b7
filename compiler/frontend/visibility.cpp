// SPDX-License-Identifier: MIT
#include "visibility.hpp"

#include "annotations.hpp"
#include "body_facts.hpp"

#include "clang/AST/DeclFriend.h"
#include "clang/AST/DeclTemplate.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace obase::frontend {

namespace {

using records = llvm::SmallVector<const clang::RecordDecl*, 4>;
void mentioned_records(llvm::ArrayRef<clang::TemplateArgument> arguments, records& found,
                       unsigned depth);

// The records that a type is about: through pointers, references, arrays and template arguments.
void mentioned_records(clang::QualType type, records& found, unsigned depth = 0) {
    if (type.isNull() || depth > 8) return;
    type = type.getCanonicalType();
    for (;;) {
        if (type->isPointerType() || type->isReferenceType())
            type = type->getPointeeType();
        else if (const auto* array = llvm::dyn_cast<clang::ArrayType>(type.getTypePtr()))
            type = array->getElementType();
        else if (const auto* atomic = type->getAs<clang::AtomicType>())
            type = atomic->getValueType();
        else
            break;
    }
    const auto* is_record = type->getAs<clang::RecordType>();
    if (is_record == nullptr) return;
    const clang::RecordDecl* record = is_record->getDecl();
    found.push_back(record);
    if (const auto* special = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(record))
        mentioned_records(special->getTemplateArgs().asArray(), found, depth + 1);
}

void mentioned_records(llvm::ArrayRef<clang::TemplateArgument> arguments, records& found,
                       unsigned depth) {
    for (const auto& argument : arguments)
        if (argument.getKind() == clang::TemplateArgument::Type)
            mentioned_records(argument.getAsType(), found, depth);
        else if (argument.getKind() == clang::TemplateArgument::Pack)
            mentioned_records(argument.getPackAsArray(), found, depth);
}

// Those that a function's parameters, its template's arguments and those of its class are about.
records mentioned_records(const clang::FunctionDecl* function) {
    records found;
    for (const auto* parameter : function->parameters())
        mentioned_records(parameter->getType(), found);
    if (const auto* arguments = function->getTemplateSpecializationArgs())
        mentioned_records(arguments->asArray(), found, 0);
    if (const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function))
        if (const auto* special =
                llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(method->getParent()))
            mentioned_records(special->getTemplateArgs().asArray(), found, 0);
    return found;
}

bool is_friend(const clang::RecordDecl* giver, const clang::RecordDecl* taker,
               const clang::FunctionDecl* function) {
    const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(giver);
    if (record == nullptr) return false;
    for (const auto* grant : record->friends()) {
        if (const auto* type = grant->getFriendType()) {
            const auto* friend_type = type->getType()->getAsCXXRecordDecl();
            if (taker != nullptr && friend_type != nullptr &&
                friend_type->getCanonicalDecl() == taker->getCanonicalDecl())
                return true;
        } else if (const auto* named = grant->getFriendDecl()) {
            if (function != nullptr && named->getCanonicalDecl() == function->getCanonicalDecl())
                return true;
            // A friend class template: any of its specializations.
            const auto* special =
                llvm::dyn_cast_or_null<clang::ClassTemplateSpecializationDecl>(taker);
            if (special != nullptr &&
                named->getCanonicalDecl() == special->getSpecializedTemplate()->getCanonicalDecl())
                return true;
            const auto* pattern =
                function == nullptr ? nullptr : function->getTemplateInstantiationPattern();
            const auto* friend_template = llvm::dyn_cast<clang::FunctionTemplateDecl>(named);
            if (pattern != nullptr && friend_template != nullptr &&
                friend_template->getTemplatedDecl()->getCanonicalDecl() ==
                    pattern->getCanonicalDecl())
                return true;
        }
    }
    return false;
}

// Can code that is no part of the enclosing class name this class?
bool can_be_named(const clang::CXXRecordDecl* record) {
    for (const clang::Decl* at = record; at != nullptr;
         at = llvm::dyn_cast<clang::Decl>(at->getDeclContext())) {
        if (!llvm::isa<clang::CXXRecordDecl>(at)) break;
        if (at->getAccess() == clang::AS_private || at->getAccess() == clang::AS_protected)
            return false;
    }
    return record->isLocalClass() == nullptr;
}

bool returns_address(const clang::FunctionDecl* function) {
    const clang::QualType type = function->getReturnType();
    return type->isPointerType() || type->isReferenceType();
}

// Functions of the standard library that return their argument and call nothing of it.
bool hands_on(const clang::FunctionDecl* function) {
    return llvm::is_contained({"forward", "forward_like", "move", "move_if_noexcept", "addressof",
                               "as_const", "ref", "cref"},
                              function->getDeclName().isIdentifier() ? function->getName() : "");
}

// True if a holder of this type can name the closure's type. A closure is written in a function, so
// it can be named by a class that is local to one, which is searched, by a closure, or by an
// argument of a template; other classes are older than it. What a template has been instantiated
// with meanwhile takes no part: that is not the same in each translation unit.
bool leads_to(clang::QualType from, const clang::CXXRecordDecl* closure) {
    llvm::SmallVector<clang::QualType, 16> ahead{from};
    llvm::DenseSet<const clang::Type*> been;
    const auto push_arguments = [&](llvm::ArrayRef<clang::TemplateArgument> arguments,
                                    const auto& again) -> void {
        for (const auto& argument : arguments)
            if (argument.getKind() == clang::TemplateArgument::Pack)
                again(argument.getPackAsArray(), again);
            else
                ahead.push_back(argument.getKind() == clang::TemplateArgument::Type
                                    ? argument.getAsType()
                                    : argument.getNonTypeTemplateArgumentType());
    };
    while (!ahead.empty()) {
        const clang::QualType next = ahead.pop_back_val();
        if (next.isNull()) continue;
        const clang::Type* type = next.getCanonicalType().getTypePtr();
        if (!been.insert(type).second) continue;
        if (const auto* array = llvm::dyn_cast<clang::ArrayType>(type)) {
            ahead.push_back(array->getElementType());
        } else if (const auto* atomic = llvm::dyn_cast<clang::AtomicType>(type)) {
            ahead.push_back(atomic->getValueType());
        } else if (const auto* member = llvm::dyn_cast<clang::MemberPointerType>(type)) {
            ahead.push_back(clang::QualType(member->getClass(), 0));
            ahead.push_back(member->getPointeeType());
        } else if (const auto* function = llvm::dyn_cast<clang::FunctionType>(type)) {
            ahead.push_back(function->getReturnType());
            if (const auto* prototype = llvm::dyn_cast<clang::FunctionProtoType>(function))
                ahead.append(prototype->param_type_begin(), prototype->param_type_end());
        } else if (!type->getPointeeType().isNull()) {
            ahead.push_back(type->getPointeeType());
        }
        const auto* tag = type->getAsTagDecl();
        if (tag == nullptr) continue;
        if (tag->getCanonicalDecl() == closure->getCanonicalDecl()) return true;
        bool local = false;
        for (const clang::DeclContext* at = tag; at != nullptr; at = at->getParent()) {
            if (const auto* special = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(at))
                push_arguments(special->getTemplateArgs().asArray(), push_arguments);
            const auto* around = llvm::dyn_cast<clang::FunctionDecl>(at);
            if (around == nullptr) continue;
            local = true;
            if (const auto* arguments = around->getTemplateSpecializationArgs())
                push_arguments(arguments->asArray(), push_arguments);
        }
        const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(tag);
        if (!local || record == nullptr || !record->hasDefinition()) continue;
        // It is not known yet what instances of a generic closure will return.
        if (record->isGenericLambda()) return true;
        for (const auto& base : record->getDefinition()->bases()) ahead.push_back(base.getType());
        for (const auto* part : record->getDefinition()->decls())
            if (const auto* value = llvm::dyn_cast<clang::ValueDecl>(part))
                ahead.push_back(value->getType());
            else if (const auto* named = llvm::dyn_cast<clang::TypeDecl>(part))
                ahead.push_back(part->getASTContext().getTypeDeclType(named));
    }
    return false;
}

// True if a function around it returns the closure, alone or in something: a function that gets it
// may call it in another translation unit.
bool is_returned(const clang::CXXRecordDecl* closure) {
    for (const clang::CXXRecordDecl* at = closure; at != nullptr;) {
        const auto* around = llvm::dyn_cast<clang::FunctionDecl>(at->getDeclContext());
        if (around == nullptr) return true; // a variable's initializer
        if (leads_to(around->getReturnType(), closure)) return true;
        const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(around);
        at = method != nullptr && method->getParent()->isLambda() ? method->getParent() : nullptr;
    }
    return false;
}

std::string names_mark(const clang::DeclaratorDecl* mark) {
    const bool field = llvm::isa<clang::FieldDecl>(mark);
    return std::string("names the marked ") + (field ? "field " : "variable ") + quoted(mark);
}

constexpr char leaving_closure[] =
    "closure that is stored or passed, and may run in another thread";

const char* annotation(role is) {
    return is == role::entry ? entry_text : is == role::internal ? internal_text : nullptr;
}

} // namespace

bool visibility::accessible(const clang::FieldDecl* mark, const clang::RecordDecl* from_class,
                            const clang::FunctionDecl* from_function) {
    const clang::RecordDecl* holder = mark->getParent();
    if (mark->getAccess() == clang::AS_public || mark->getAccess() == clang::AS_none) return true;
    if (from_class != nullptr && holder->getCanonicalDecl() == from_class->getCanonicalDecl())
        return true;
    return is_friend(holder, from_class, from_function);
}

// A class works on marked fields if it, a base or a class nested in it declares one, or if a field
// of it is about a type with marked fields that it may name. It does not if it merely has a member
// that is a data structure with private marked fields: that one has entries of its own, and a whole
// program may be a class with such members.
std::string visibility::why_class_needs_scope(const clang::CXXRecordDecl* record) {
    const auto because = [&](const clang::FieldDecl* mark) {
        return "method of '" + record->getQualifiedNameAsString() +
               "', which works on the marked field " + quoted(mark);
    };
    if (record == nullptr || !record->hasDefinition()) return {};
    record = record->getDefinition();
    if (const auto* mark = types_.declared_mark(record)) return because(mark);
    for (const auto& base : record->bases())
        if (const auto* type = base.getType()->getAsCXXRecordDecl())
            if (const auto* mark = types_.declared_mark(type->getDefinition()))
                if (mark->getAccess() != clang::AS_private || is_friend(type, record, nullptr))
                    return because(mark);
    for (const auto* nested : record->decls())
        if (const auto* inner = llvm::dyn_cast<clang::CXXRecordDecl>(nested))
            if (inner->isCompleteDefinition() && !inner->isInjectedClassName())
                if (const auto* mark = types_.declared_mark(inner)) return because(mark);
    for (const auto* field : record->fields()) {
        records about;
        mentioned_records(field->getType(), about);
        for (const auto* part : about)
            if (const auto* mark = types_.declared_mark(part->getDefinition()))
                if (accessible(mark, record, nullptr)) return because(mark);
    }
    return {};
}

const clang::RecordDecl* visibility::worked_on_by_parameters(const clang::FunctionDecl* function,
                                                             bool& managed) {
    const clang::RecordDecl* found = nullptr;
    for (const auto* parameter : function->parameters()) {
        const clang::QualType type = parameter->getType().getCanonicalType();
        if (!type->isPointerType() && !type->isReferenceType()) continue;
        const auto* record = type->getPointeeType()->getAs<clang::RecordType>();
        if (record == nullptr) continue;
        if (types_.is_managed(record->getDecl())) {
            managed = true;
            return record->getDecl();
        }
        const auto* mark = types_.declared_mark(record->getDecl()->getDefinition());
        if (mark != nullptr && accessible(mark, nullptr, function)) found = record->getDecl();
    }
    return found;
}

visibility::decision visibility::decide(const clang::FunctionDecl* function,
                                        const body_facts& facts) {
    decision made;
    made.uses = facts.uses;
    made.needs_scope = facts.mark != nullptr || facts.managed_member != nullptr;

    const llvm::StringRef named = outside_.role(function);
    const auto told = [&](llvm::StringRef what) {
        return named == what || annotated(function, what);
    };
    if (told(outside_text)) {
        made.stays_outside = true;
        return made;
    }
    if (told(entry_text) || told(internal_text)) {
        made.is = told(entry_text) ? role::entry : role::internal;
        made.why = named.empty() ? "the source says so" : "the marks file says so";
        return made;
    }

    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
    const auto* of = method == nullptr ? nullptr : method->getParent();
    bool managed = of != nullptr && types_.is_managed(of);
    if (facts.mark != nullptr)
        made.why = names_mark(facts.mark);
    else if (of != nullptr)
        made.why = why_class_needs_scope(of);
    if (made.why.empty() && managed)
        made.why = "method of " + quoted(of) + ", whose objects are managed";
    if (const auto* record = worked_on_by_parameters(function, managed); made.why.empty() && record)
        made.why = "takes a " + quoted(record);
    if (made.why.empty() && facts.managed_member != nullptr && !function->isMain())
        made.why = "uses " + quoted(facts.managed_member) + " of a managed object";
    if (made.why.empty()) return made;

    if (function->isMain()) {
        made.is = role::entry;
        says_.warn(function->getLocation(), "main",
                   "the whole of main() becomes one operation: it " + made.why,
                   "no object can move while an operation runs; move the code that names the field "
                   "into a function");
        return made;
    }
    place(function, managed, made);
    return made;
}

// True if the function, a part of operations, has a scope of its own.
void visibility::place(const clang::FunctionDecl* function, bool managed, decision& made) {
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
    // A virtual method can be called through a base that has nothing to do with marked fields;
    // constructors and destructors are called by everybody who makes an object, std::make_unique too.
    if (llvm::isa<clang::CXXConstructorDecl, clang::CXXDestructorDecl>(function) ||
        (method != nullptr && method->isVirtual())) {
        made.is = role::entry;
        return;
    }
    if (method != nullptr &&
        (method->getAccess() == clang::AS_private || method->getAccess() == clang::AS_protected ||
         !can_be_named(method->getParent()))) {
        made.is = role::internal;
        made.may_change = method->getParent()->isLocalClass() != nullptr;
        return;
    }
    if (managed && returns_address(function)) {
        // Its caller has the address of a managed object, so is inside an operation.
        made.is = role::internal;
        made.may_change = function->getFormalLinkage() == clang::Linkage::Internal;
        return;
    }
    if (method == nullptr && function->getFormalLinkage() == clang::Linkage::Internal) {
        made.is = role::internal;
        made.may_change = true;
        return;
    }
    made.is = role::entry;
}

void visibility::set(clang::FunctionDecl* function, decision what) {
    const char* text = annotation(what.is);
    if (text != nullptr)
        for (auto* declaration : function->redecls()) annotate(declaration, text);
    decisions_[llvm::cast<clang::FunctionDecl>(function->getCanonicalDecl())] = std::move(what);
}

// A closure whose calls are all seen, in operations, has their scopes; resolve_closures() knows.
void visibility::place_closure(const clang::FunctionDecl* function, decision& made) {
    const bool leaves = is_returned(llvm::cast<clang::CXXMethodDecl>(function)->getParent());
    made.is = leaves ? role::entry : role::internal;
    made.may_change = !leaves;
    made.why = leaves ? leaving_closure : "closure that is called in operations only";
}

void visibility::set_closure(const clang::LambdaExpr* closure, bool stays_here, role enclosing) {
    auto* function = closure->getCallOperator();
    if (function == nullptr || function->isDependentContext()) return;
    body_facts facts = facts_of(closure->getBody(), types_);
    decision made;
    made.uses = std::move(facts.uses);
    made.needs_scope = facts.mark != nullptr || facts.managed_member != nullptr;
    place_closure(function, made);
    if (stays_here) {
        made.is = role::internal;
        made.may_change = true;
        made.why = "closure that is only called where it is written";
    }
    made.if_it_reaches = !stays_here || enclosing == role::none;
    set(function, std::move(made));
}

void visibility::look_at(clang::FunctionDecl* function) {
    // What another translation unit returns from within an operation is known by the marks file.
    if (!function->isThisDeclarationADefinition() && outside_.role(function) == internal_text)
        annotate(function, internal_text);
    if (!function->doesThisDeclarationHaveABody() || function->isDependentContext() ||
        function->isImplicit() || function->isDefaulted() || function->isInvalidDecl() ||
        decisions_.count(function->getCanonicalDecl()) != 0)
        return;
    const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(function);
    const bool closure = method != nullptr && method->getParent()->isLambda();
    // With the function it is written in; only the instances of generic ones come by themselves.
    if (closure && !function->isTemplateInstantiation()) return;

    const body_facts facts = facts_of(function, types_);
    decision made = decide(function, facts);
    if (closure && made.is != role::none) place_closure(function, made);
    const role is = made.is;
    set(function, std::move(made));
    for (const auto& [inner, stays_here] : facts.closures) set_closure(inner, stays_here, is);
}

void visibility::look_at(clang::VarDecl* variable) {
    if (!variable->hasInit() || variable->getDeclContext()->isDependentContext()) return;
    const body_facts facts = facts_of(variable->getInit(), types_);
    uses_outside_.insert(uses_outside_.end(), facts.uses.begin(), facts.uses.end());
    for (const auto& [closure, stays_here] : facts.closures)
        set_closure(closure, false, role::none);
}

// What an implicit constructor does beyond setting fields and calling other constructors is in
// default member initializers and default arguments. It is an operation if these name a marked
// field, or by what they call (add_callers()).
void visibility::look_at_defaulted() {
    for (const auto* record : classes_)
        for (auto* constructor : record->ctors()) {
            if (!constructor->isDefaulted() || constructor->isCopyOrMoveConstructor() ||
                !constructor->doesThisDeclarationHaveABody() || constructor->isDependentContext() ||
                decisions_.count(constructor->getCanonicalDecl()) != 0)
                continue;
            const body_facts facts = facts_of(constructor, types_);
            decision made;
            made.uses = facts.uses;
            made.needs_scope = facts.mark != nullptr || facts.managed_member != nullptr;
            if (facts.mark != nullptr) {
                made.is = role::entry;
                made.why = names_mark(facts.mark);
            }
            const role is = made.is;
            set(constructor, std::move(made));
            for (const auto& [inner, stays_here] : facts.closures)
                set_closure(inner, stays_here, is);
        }
}

role visibility::role_of(const clang::FunctionDecl* function) const {
    const auto found =
        decisions_.find(llvm::cast<clang::FunctionDecl>(function->getCanonicalDecl()));
    return found == decisions_.end() ? role::none : found->second.is;
}

// Does the function touch slots or managed objects, itself or in internal functions it calls?
bool visibility::reaches_slots(const clang::FunctionDecl* function) {
    llvm::SmallVector<const clang::FunctionDecl*, 16> ahead{function};
    llvm::DenseSet<const clang::FunctionDecl*> been;
    while (!ahead.empty()) {
        const auto* at = llvm::cast<clang::FunctionDecl>(ahead.pop_back_val()->getCanonicalDecl());
        if (!been.insert(at).second) continue;
        const auto found = decisions_.find(at);
        if (found == decisions_.end() ||
            (at != function->getCanonicalDecl() && found->second.is != role::internal))
            continue;
        if (found->second.needs_scope) return true;
        for (const auto& it : found->second.uses) ahead.push_back(it.of);
    }
    return false;
}

bool visibility::said_internal(const clang::FunctionDecl* function) const {
    return outside_.role(function) == internal_text || annotated(function, internal_text);
}

void visibility::promote(const clang::FunctionDecl* function, const std::string& why) {
    auto& made = decisions_[llvm::cast<clang::FunctionDecl>(function->getCanonicalDecl())];
    made.is = role::entry;
    made.why = why;
    auto* changed = const_cast<clang::FunctionDecl*>(function);
    for (auto* declaration : changed->redecls()) {
        remove_annotation(declaration, internal_text);
        annotate(declaration, entry_text);
    }
}

// A function that calls a part of operations is one of them, even if it names no marked field itself:
// it works on them through others, as the methods of a data structure that is made of wrappers do.
void visibility::add_callers() {
    for (bool changed = true; changed;) {
        changed = false;
        for (auto& [function, made] : decisions_) {
            if (made.is != role::none || made.stays_outside || function->isMain()) continue;
            // One that may become an operation does that instead.
            const auto calls_part = [this](const use& it) {
                const auto callee =
                    decisions_.find(llvm::cast<clang::FunctionDecl>(it.of->getCanonicalDecl()));
                return it.call && callee != decisions_.end() &&
                       callee->second.is == role::internal && !callee->second.may_change &&
                       reaches_slots(it.of);
            };
            const auto found = llvm::find_if(made.uses, calls_part);
            if (found == made.uses.end()) continue;
            made.why = "calls " + quoted(found->of) + ", which is a part of operations";
            // A function that returns the address of a managed object cannot be an operation.
            const clang::QualType result = function->getReturnType();
            const auto* record = result->isPointerType() || result->isReferenceType()
                                     ? result->getPointeeType()->getAs<clang::RecordType>()
                                     : nullptr;
            place(function, record != nullptr && types_.is_managed(record->getDecl()), made);
            auto* placed = const_cast<clang::FunctionDecl*>(function);
            for (auto* declaration : placed->redecls()) annotate(declaration, annotation(made.is));
            changed = true;
        }
    }
}

// Closures that work on no slots are no part of operations. Of the others that are called by code that
// is not looked at, in the standard library or through a pointer to a function, it is not known
// when.
void visibility::resolve_closures() {
    llvm::SmallVector<const clang::FunctionDecl*, 8> idle;
    for (const auto& [function, made] : decisions_)
        if (made.if_it_reaches && !reaches_slots(function)) idle.push_back(function);
    for (const auto* function : idle) {
        auto& made = decisions_[function];
        made.is = role::none;
        made.stays_outside = true;
        for (auto* declaration : function->redecls())
            for (const char* text : {entry_text, internal_text})
                remove_annotation(const_cast<clang::FunctionDecl*>(declaration), text);
    }
    const auto leaves = [this](const clang::RecordDecl* record) {
        const auto* type = llvm::dyn_cast<clang::CXXRecordDecl>(record);
        if (type == nullptr || !type->isLambda()) return;
        const auto called_there = [&](const clang::FunctionDecl* function) {
            const auto found =
                decisions_.find(llvm::cast<clang::FunctionDecl>(function->getCanonicalDecl()));
            if (found != decisions_.end() && found->second.is == role::internal &&
                found->second.may_change)
                promote(function, leaving_closure);
        };
        if (const auto* generic = type->getDependentLambdaCallOperator())
            for (const auto* instance : generic->specializations()) called_there(instance);
        else if (const auto* function = type->getLambdaCallOperator())
            called_there(function);
    };
    const auto look = [&](const use& it) {
        const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(it.of);
        if (method != nullptr && method->getParent()->isLambda() &&
            llvm::isa<clang::CXXConversionDecl>(method))
            leaves(method->getParent());
        if (of_standard_library(it.of) && !hands_on(it.of))
            for (const auto* record : mentioned_records(it.of)) leaves(record);
    };
    for (const auto& it : uses_outside_) look(it);
    for (const auto& [function, made] : decisions_)
        for (const auto& it : made.uses) look(it);
}

void visibility::finish() {
    look_at_defaulted();
    add_callers();
    resolve_closures();
    const auto look = [&](const use& it, bool from_operation) {
        if (from_operation && it.call) return;
        const auto found =
            decisions_.find(llvm::cast<clang::FunctionDecl>(it.of->getCanonicalDecl()));
        // Of what is defined elsewhere only what the source or the marks file says is known.
        const bool elsewhere = found == decisions_.end();
        if (elsewhere ? !said_internal(it.of)
                      : found->second.is != role::internal || !reaches_slots(it.of))
            return;
        const std::string how =
            it.call ? "called outside of any operation" : "its address is taken";
        if (!elsewhere && found->second.may_change) {
            promote(it.of, found->second.if_it_reaches ? leaving_closure : how);
            return;
        }
        const bool said = says_.refuse(
            it.where, "outside-operation",
            quoted(it.of) + " runs in the scope of its caller, but here " +
                (it.call ? "it is called outside of any operation" : how),
            "call it from a function that is an operation (OBASE_ENTRY makes one), or mark " +
                quoted(it.of) + " OBASE_ENTRY if it can be one itself");
        if (said && it.text.isValid())
            says_.note(it.text, "by this default argument or member initializer");
    };
    // A function that promotion makes an entry was internal, so its own uses were and are those of
    // an operation.
    for (const auto& it : uses_outside_) look(it, false);
    for (const auto& [function, made] : decisions_)
        for (const auto& it : made.uses) look(it, made.is != role::none);
}

} // namespace obase::frontend
