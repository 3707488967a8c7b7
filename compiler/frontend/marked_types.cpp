// SPDX-License-Identifier: MIT
#include "marked_types.hpp"

#include "annotations.hpp"

#include "clang/AST/DeclCXX.h"
#include "clang/AST/DeclTemplate.h"
#include "clang/AST/ExprCXX.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/AST/Type.h"
#include "llvm/ADT/StringSwitch.h"

namespace obase::frontend {

const clang::RecordDecl* record_of(clang::QualType type) {
    if (type.isNull()) return nullptr;
    for (;;) {
        type = type.getCanonicalType();
        if (const auto* array = llvm::dyn_cast<clang::ArrayType>(type.getTypePtr()))
            type = array->getElementType();
        else if (const auto* atomic = type->getAs<clang::AtomicType>())
            type = atomic->getValueType();
        else
            break;
    }
    const auto* record = type->getAs<clang::RecordType>();
    return record == nullptr ? nullptr : record->getDecl()->getDefinition();
}

llvm::StringRef standard_name(const clang::RecordDecl* record) {
    if (record == nullptr || record->getIdentifier() == nullptr || !record->isInStdNamespace())
        return {};
    return record->getName();
}

bool of_standard_library(const clang::Decl* declaration) {
    const auto* context = declaration->getDeclContext();
    if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(declaration)) context = space;
    const clang::NamespaceDecl* outermost = nullptr;
    for (; context != nullptr; context = context->getParent())
        if (const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(context)) outermost = space;
    if (outermost == nullptr) return false;
    const llvm::StringRef name = outermost->getName();
    return name == "std" || name.starts_with("__gnu_") || name == "__cxxabiv1";
}

clang::QualType type_argument(const clang::RecordDecl* record, unsigned n) {
    const auto* special = llvm::dyn_cast<clang::ClassTemplateSpecializationDecl>(record);
    if (special == nullptr || special->getTemplateArgs().size() <= n) return {};
    const auto& argument = special->getTemplateArgs()[n];
    return argument.getKind() == clang::TemplateArgument::Type ? argument.getAsType()
                                                               : clang::QualType();
}

std::string quoted(const clang::NamedDecl* declaration) {
    // Its own name alone says too little for a member.
    const bool member = llvm::isa<clang::RecordDecl>(declaration->getDeclContext());
    return "'" +
           (member ? declaration->getQualifiedNameAsString() : declaration->getNameAsString()) +
           "'";
}

std::string quoted(clang::QualType type, const clang::ASTContext& ast) {
    return "'" + type.getAsString(ast.getPrintingPolicy()) + "'";
}

namespace {

// Name, type and place, for the reports of the audit.
void describe(clang::FieldDecl& field) {
    const clang::ASTContext& ast = field.getASTContext();
    const clang::PresumedLoc at = ast.getSourceManager().getPresumedLoc(field.getLocation());
    annotate_about(&field, guided_text,
                   field.getQualifiedNameAsString() + "\t" +
                       field.getType().getAsString(ast.getPrintingPolicy()) + "\t" +
                       (at.isValid()
                            ? std::string(at.getFilename()) + ":" + std::to_string(at.getLine())
                            : std::string()));
}

} // namespace

void marked_types::look_at(const clang::RecordDecl* record) {
    if (record == nullptr || !record->isCompleteDefinition() || seen_.count(record) != 0) return;
    // `typedef struct { ... } name;` gets its name after it was complete.
    if (record->getIdentifier() != nullptr || record->getTypedefNameForAnonDecl() != nullptr)
        seen_.insert(record);
    // The attribute is for the code generator, so the declaration itself has to change.
    outside_.apply(const_cast<clang::RecordDecl*>(record), says_);
    if (record->isDependentContext()) return;
    for (auto* field : record->fields()) {
        if (!annotated(field, guided_text)) continue;
        if (marks_.insert(field)) describe(*field);
        look_at_pointee(field);
    }
}

void marked_types::look_at(clang::VarDecl* variable) {
    if (annotated(variable, guided_text)) look_at_pointee(variable);
}

// The declared field or variable is marked: its objects are managed, and what is an array of pointers has
// slots as elements.
void marked_types::look_at_pointee(clang::DeclaratorDecl* marked) {
    clang::QualType to = pointee(marked->getType());
    if (to.isNull()) return;
    if (const clang::QualType element = element_pointee(to); !element.isNull()) {
        annotate(marked, elements_text);
        to = element;
    }
    if (const auto* target = to.getCanonicalType()->getAs<clang::RecordType>())
        managed_.insert(llvm::cast<clang::RecordDecl>(target->getDecl()->getCanonicalDecl()));
}

// What an element points to, if a marked field points to an array of pointers; else null. Smart pointers
// are no such elements: the array has their number before them.
clang::QualType marked_types::element_pointee(clang::QualType array) {
    if (standard_name(record_of(array)) == "unique_ptr") return {};
    const clang::QualType to = pointee(array);
    return to.isNull() || to->isFunctionType() ? clang::QualType() : to;
}

bool marked_types::is_marked(const clang::FieldDecl* field) {
    look_at(field->getParent());
    return annotated(field, guided_text);
}

const clang::FieldDecl* marked_types::declared_mark(const clang::RecordDecl* record) {
    if (record == nullptr) return nullptr;
    look_at(record);
    for (const auto* field : record->fields()) {
        if (annotated(field, guided_text)) return field;
        if (field->isAnonymousStructOrUnion())
            if (const auto* inner = declared_mark(record_of(field->getType()))) return inner;
    }
    return nullptr;
}

const clang::FieldDecl* marked_types::held_mark(clang::QualType type) {
    const clang::RecordDecl* record = record_of(type);
    if (record == nullptr || record->isDependentContext()) return nullptr;
    const auto known = held_.find(record);
    if (known != held_.end()) return known->second;

    const clang::FieldDecl* found = declared_mark(record);
    if (const auto* derived = llvm::dyn_cast<clang::CXXRecordDecl>(record))
        for (const auto& base : derived->bases())
            if (found == nullptr) found = held_mark(base.getType());
    for (const auto* field : record->fields())
        if (found == nullptr) found = held_mark(field->getType());
    held_[record] = found;
    return found;
}

const clang::FieldDecl* marked_types::mark_copied_by_default(const clang::RecordDecl* record,
                                                             bool assignment) {
    if (record == nullptr || held_mark(clang::QualType(record->getTypeForDecl(), 0)) == nullptr)
        return nullptr;
    for (const auto* field : record->fields())
        // A marked field of class type (std::unique_ptr) copies and moves as that class says.
        if (is_marked(field) && record_of(field->getType()) == nullptr) return field;

    const auto by_hand = [assignment](const clang::RecordDecl* part) {
        const auto* type = llvm::dyn_cast<clang::CXXRecordDecl>(part);
        if (type == nullptr) return false;
        if (!assignment)
            return type->hasUserDeclaredMoveConstructor() || type->hasUserDeclaredCopyConstructor();
        return type->hasUserDeclaredMoveAssignment() || type->hasUserDeclaredCopyAssignment();
    };
    const auto in_part = [&](clang::QualType type) -> const clang::FieldDecl* {
        const clang::RecordDecl* part = record_of(type);
        return part == nullptr || by_hand(part) ? nullptr
                                                : mark_copied_by_default(part, assignment);
    };
    if (const auto* derived = llvm::dyn_cast<clang::CXXRecordDecl>(record))
        for (const auto& base : derived->bases())
            if (const auto* found = in_part(base.getType())) return found;
    for (const auto* field : record->fields())
        if (const auto* found = in_part(field->getType())) return found;
    return nullptr;
}

bool marked_types::is_managed(const clang::RecordDecl* record) {
    if (record == nullptr) return false;
    look_at(record->getDefinition());
    if (managed_.count(llvm::cast<clang::RecordDecl>(record->getCanonicalDecl())) != 0) return true;
    const auto* derived = llvm::dyn_cast<clang::CXXRecordDecl>(record);
    if (derived == nullptr || !derived->hasDefinition()) return false;
    for (const auto& base : derived->bases())
        if (const auto* type = base.getType()->getAs<clang::RecordType>())
            if (is_managed(type->getDecl())) return true;
    return false;
}

clang::QualType marked_types::pointee(const clang::FieldDecl* field) {
    return pointee(field->getType());
}

clang::QualType marked_types::pointee(clang::QualType type) {
    type = type.getCanonicalType();
    while (const auto* array = llvm::dyn_cast<clang::ArrayType>(type.getTypePtr()))
        type = array->getElementType();
    if (const auto* atomic = type->getAs<clang::AtomicType>()) type = atomic->getValueType();
    if (const auto* record = type->getAs<clang::RecordType>()) {
        const llvm::StringRef name = standard_name(record->getDecl());
        const clang::QualType argument = type_argument(record->getDecl(), 0);
        if (argument.isNull()) return {};
        if (name == "unique_ptr") return argument;
        if (name != "atomic") return {};
        type = argument.getCanonicalType();
    }
    return type->isPointerType() ? type->getPointeeType() : clang::QualType();
}

namespace {

// Does a constructor, or the initializer of a field, put the object's own address into it?
class own_address : public clang::RecursiveASTVisitor<own_address> {
  public:
    bool found = false;

    // `this` as a value, not as in this->member, which is no address that is kept.
    bool TraverseMemberExpr(clang::MemberExpr* member, DataRecursionQueue* queue = nullptr) {
        if (llvm::isa<clang::CXXThisExpr>(member->getBase()->IgnoreParenImpCasts())) return true;
        return RecursiveASTVisitor::TraverseMemberExpr(member, queue);
    }
    bool TraverseUnaryOperator(clang::UnaryOperator* op, DataRecursionQueue* queue = nullptr) {
        const auto* member =
            llvm::dyn_cast<clang::MemberExpr>(op->getSubExpr()->IgnoreParenImpCasts());
        if (op->getOpcode() == clang::UO_AddrOf && member != nullptr &&
            llvm::isa<clang::CXXThisExpr>(member->getBase()->IgnoreParenImpCasts()))
            found = true;
        return RecursiveASTVisitor::TraverseUnaryOperator(op, queue);
    }
    // An array member, as a pointer to its first element.
    bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) {
        const auto* member =
            llvm::dyn_cast<clang::MemberExpr>(cast->getSubExpr()->IgnoreParenImpCasts());
        if (cast->getCastKind() == clang::CK_ArrayToPointerDecay && member != nullptr &&
            llvm::isa<clang::CXXThisExpr>(member->getBase()->IgnoreParenImpCasts()))
            found = true;
        return true;
    }
    bool VisitCXXThisExpr(clang::CXXThisExpr*) {
        found = true;
        return true;
    }
};

bool is_own_address(clang::Expr* value) {
    if (value == nullptr || !value->getType()->isPointerType()) return false;
    own_address look;
    look.TraverseStmt(value);
    return look.found;
}

// A field that a constructor of the class sets to an address within the object. Not a marked one:
// the sentinel of a circular list begins like that, and is no managed object.
const clang::FieldDecl* self_pointer(const clang::CXXRecordDecl* record) {
    for (const auto* field : record->fields())
        if (field->getType()->isPointerType() && !annotated(field, guided_text) &&
            field->hasInClassInitializer() && is_own_address(field->getInClassInitializer()))
            return field;
    for (const auto* constructor : record->ctors()) {
        const clang::FunctionDecl* definition = nullptr;
        if (!constructor->hasBody(definition)) continue;
        for (const auto* initializer : llvm::cast<clang::CXXConstructorDecl>(definition)->inits())
            if (initializer->isMemberInitializer() &&
                !annotated(initializer->getMember(), guided_text) &&
                is_own_address(initializer->getInit()))
                return initializer->getMember();
    }
    return nullptr;
}

// Types of the C and C++ libraries whose objects know their own address, or are known by it.
const char* known_immovable(const clang::RecordDecl* record) {
    if (record->getIdentifier() == nullptr) return nullptr;
    constexpr const char* into_itself = "it points into itself";
    constexpr const char* from_nodes = "its nodes point back to it";
    constexpr const char* waiting = "a waiting thread keeps its address";
    const char* name =
        llvm::StringSwitch<const char*>(standard_name(record))
            .Case("basic_string", "short strings point into themselves")
            .Cases("list", "map", "multimap", "set", "multiset", from_nodes)
            .Cases("unordered_map", "unordered_multimap", into_itself)
            .Cases("unordered_set", "unordered_multiset", into_itself)
            .Cases("mutex", "recursive_mutex", "timed_mutex", "shared_mutex", waiting)
            .Cases("recursive_timed_mutex", "shared_timed_mutex", waiting)
            .Cases("condition_variable", "condition_variable_any", waiting)
            .Cases("counting_semaphore", "barrier", "latch", waiting)
            .Case("any", "a value in it may know its own address")
            .Case("enable_shared_from_this", "std::shared_ptr keeps its address")
            .Cases("basic_ios", "ios_base", "basic_streambuf", into_itself)
            .Default(nullptr);
    if (name != nullptr) return name;
    if (!record->getDeclContext()->getRedeclContext()->isTranslationUnit()) return nullptr;
    return llvm::StringSwitch<const char*>(record->getName())
        .Cases("__jmp_buf_tag", "ucontext_t", "it holds addresses of a stack")
        .Case("_IO_FILE", "the C library keeps its address")
        .Default(nullptr);
}

// pthread_mutex_t and its kind are unions without a tag of their own; the typedef has the name.
bool is_thread_object(clang::QualType type) {
    const auto* alias = type->getAs<clang::TypedefType>();
    if (alias == nullptr) return false;
    return llvm::StringSwitch<bool>(alias->getDecl()->getName())
        .Cases("pthread_mutex_t", "pthread_cond_t", "pthread_rwlock_t", "pthread_barrier_t", true)
        .Cases("sem_t", "once_flag", "mtx_t", "cnd_t", true)
        .Default(false);
}

} // namespace

std::string marked_types::why_immovable(clang::QualType type) {
    while (const auto* array = type->getAsArrayTypeUnsafe()) type = array->getElementType();
    if (is_thread_object(type))
        return "a '" + type.getAsString() + "' is known to waiting threads by its address";
    // A library's class may be known by name only: nothing here needed its definition.
    if (const auto* named = type->getAs<clang::RecordType>())
        if (const char* why = known_immovable(named->getDecl()))
            return "'std::" + named->getDecl()->getNameAsString() +
                   "' cannot be moved by its bytes: " + why;
    const clang::RecordDecl* record = record_of(type);
    if (record == nullptr || record->isDependentContext()) return {};
    // Three pointers, or one, to storage elsewhere; what they point to stays where it is.
    const llvm::StringRef name = standard_name(record);
    if (name == "vector" || name == "unique_ptr" || name == "shared_ptr" || name == "weak_ptr")
        return {};

    if (const auto* whole = llvm::dyn_cast<clang::CXXRecordDecl>(record)) {
        if (name.empty())
            if (const auto* field = self_pointer(whole))
                return quoted(field) + " is set to an address within its own object";
        for (const auto& base : whole->bases())
            if (std::string why = why_immovable(base.getType()); !why.empty()) return why;
    }
    for (const auto* field : record->fields())
        if (std::string why = why_immovable(field->getType()); !why.empty())
            return llvm::isa<clang::RecordDecl>(field->getDeclContext()) && name.empty() &&
                           !field->getName().empty()
                       ? quoted(field) + ": " + why
                       : why;
    return {};
}

} // namespace obase::frontend
