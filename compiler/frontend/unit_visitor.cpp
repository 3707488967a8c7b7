// SPDX-License-Identifier: MIT
#include "unit_visitor.hpp"

#include "clang/AST/DeclTemplate.h"
#include "clang/AST/RecursiveASTVisitor.h"

#include <vector>

namespace obase::frontend {

namespace {

class unit_visitor : public clang::RecursiveASTVisitor<unit_visitor> {
  public:
    explicit unit_visitor(unit& in) : in_(in) {}

    bool shouldVisitTemplateInstantiations() const { return true; }

    bool TraverseDecl(clang::Decl* declaration) {
        // No code is made of what a requires expression asks.
        if (declaration == nullptr || llvm::isa<clang::RequiresExprBodyDecl>(declaration))
            return true;
        const bool library = of_standard_library(declaration);
        if (auto* function = llvm::dyn_cast<clang::FunctionDecl>(declaration)) {
            if (function->isDependentContext()) return true;
            if (library && !function->isTemplateInstantiation()) return true;
            functions_.push_back(function);
            const bool on = RecursiveASTVisitor::TraverseDecl(declaration);
            functions_.pop_back();
            return on;
        }
        if (const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(declaration))
            if (record->isDependentContext() && !record->isLambda()) return true;
        if (library && llvm::isa<clang::VarDecl, clang::TypedefNameDecl>(declaration)) return true;
        return RecursiveASTVisitor::TraverseDecl(declaration);
    }

    bool VisitDecl(clang::Decl* declaration) {
        check_mark_place(in_, declaration);
        return true;
    }
    bool VisitFieldDecl(clang::FieldDecl* field) {
        if (in_.types.is_marked(field)) check_marked_field(in_, field);
        return true;
    }
    bool VisitRecordDecl(clang::RecordDecl* record) {
        if (!record->isCompleteDefinition()) return true;
        in_.types.look_at(record);
        check_union(in_, record);
        return true;
    }
    bool VisitFunctionDecl(clang::FunctionDecl* function) {
        if (!function->doesThisDeclarationHaveABody()) return true;
        check_by_value(in_, function);
        check_coroutine(in_, function);
        return true;
    }
    bool VisitVarDecl(clang::VarDecl* variable) {
        if (variable->getDeclContext()->isDependentContext()) return true;
        check_static_initializer(in_, variable);
        // The visitor holds the copy of an element for implicit code.
        if (variable->isCXXForRangeDecl() && variable->hasInit()) TraverseStmt(variable->getInit());
        return true;
    }
    bool VisitLambdaExpr(clang::LambdaExpr* closure) {
        for (unsigned i = 0; i < closure->capture_size(); ++i) {
            const auto& capture = *(closure->capture_begin() + i);
            clang::Expr* init = *(closure->capture_init_begin() + i);
            if (!capture.isExplicit() && capture.getCaptureKind() == clang::LCK_ByCopy &&
                init != nullptr)
                TraverseStmt(init);
        }
        return true;
    }

    bool VisitCXXConstructExpr(clang::CXXConstructExpr* construct) {
        check_construct(in_, construct);
        return true;
    }
    bool VisitCallExpr(clang::CallExpr* call) {
        check_call_of_assignment(in_, call);
        check_byte_function(in_, call);
        check_arguments(in_, call);
        check_jump(in_, call, function());
        return true;
    }
    bool VisitImplicitCastExpr(clang::ImplicitCastExpr* cast) {
        check_record_load(in_, cast);
        return true;
    }
    bool VisitExplicitCastExpr(clang::ExplicitCastExpr* cast) {
        check_cast(in_, cast);
        return true;
    }
    bool VisitBuiltinBitCastExpr(clang::BuiltinBitCastExpr* cast) {
        check_bit_cast(in_, cast);
        return true;
    }
    bool VisitUnaryOperator(clang::UnaryOperator* op) {
        check_member_pointer(in_, op);
        return true;
    }
    bool VisitOffsetOfExpr(clang::OffsetOfExpr* offset) {
        check_offsetof(in_, offset);
        return true;
    }
    bool VisitReturnStmt(clang::ReturnStmt* statement) {
        check_return(in_, statement, function());
        return true;
    }
    bool VisitBinaryOperator(clang::BinaryOperator* op) {
        check_assignment(in_, op);
        return true;
    }
    bool VisitGCCAsmStmt(clang::GCCAsmStmt* statement) {
        check_asm(in_, statement);
        return true;
    }

    // The body belongs to the closure's own function, whose returns are not the enclosing one's.
    bool TraverseLambdaExpr(clang::LambdaExpr* closure, DataRecursionQueue* queue = nullptr) {
        if (closure->getCallOperator() == nullptr ||
            closure->getCallOperator()->isDependentContext()) {
            // A generic closure: its instances are functions of their own.
            for (auto* instance : instances(closure)) TraverseDecl(instance);
            return true;
        }
        functions_.push_back(closure->getCallOperator());
        VisitFunctionDecl(closure->getCallOperator());
        const bool on = RecursiveASTVisitor::TraverseLambdaExpr(closure, queue);
        functions_.pop_back();
        return on;
    }

  private:
    const clang::FunctionDecl* function() const {
        return functions_.empty() ? nullptr : functions_.back();
    }
    static std::vector<clang::FunctionDecl*> instances(const clang::LambdaExpr* closure) {
        std::vector<clang::FunctionDecl*> all;
        if (auto* pattern = closure->getDependentCallOperator())
            for (auto* instance : pattern->specializations()) all.push_back(instance);
        return all;
    }

    unit& in_;
    std::vector<const clang::FunctionDecl*> functions_;
};

} // namespace

void check_unit(unit& in) {
    unit_visitor visitor(in);
    visitor.TraverseDecl(in.ast.getTranslationUnitDecl());
}

} // namespace obase::frontend
