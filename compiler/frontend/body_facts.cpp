// SPDX-License-Identifier: MIT
#include "body_facts.hpp"

#include "annotations.hpp"

#include "clang/AST/RecursiveASTVisitor.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace obase::frontend {

namespace {

class body_visitor : public clang::RecursiveASTVisitor<body_visitor> {
  public:
    body_visitor(body_facts& facts, marked_types& types) : facts_(facts), types_(types) {}

    // Code that runs here and is written elsewhere, or nowhere: the visitor keeps to the text.
    bool TraverseInitListExpr(clang::InitListExpr* list, DataRecursionQueue* queue = nullptr) {
        // As it is meant, with the fields that the text leaves to their own initializers.
        if (!list->isSemanticForm() && list->getSemanticForm() != nullptr)
            list = list->getSemanticForm();
        if (list->hasArrayFiller()) TraverseStmt(list->getArrayFiller());
        return TraverseSynOrSemInitListExpr(list, queue);
    }
    bool TraverseCXXRewrittenBinaryOperator(clang::CXXRewrittenBinaryOperator* op,
                                            DataRecursionQueue* = nullptr) {
        return TraverseStmt(op->getSemanticForm()); // a != b by operator==
    }
    bool VisitCXXDefaultArgExpr(clang::CXXDefaultArgExpr* left_out) {
        visit_default(left_out->getExpr(), left_out->getUsedLocation());
        return true;
    }
    bool VisitCXXDefaultInitExpr(clang::CXXDefaultInitExpr* left_out) {
        visit_default(left_out->getExpr(), left_out->getUsedLocation());
        return true;
    }
    bool VisitCXXForRangeStmt(clang::CXXForRangeStmt* loop) {
        for (clang::DeclStmt* hidden :
             {loop->getBeginStmt(), loop->getEndStmt(), loop->getLoopVarStmt()})
            if (hidden != nullptr && hidden->isSingleDecl())
                if (auto* variable = llvm::dyn_cast<clang::VarDecl>(hidden->getSingleDecl()))
                    TraverseStmt(variable->getInit());
        TraverseStmt(loop->getCond());
        TraverseStmt(loop->getInc());
        return true;
    }
    bool VisitBindingDecl(clang::BindingDecl* part) {
        TraverseStmt(part->getBinding());
        if (auto* variable = part->getHoldingVar()) TraverseStmt(variable->getInit());
        return true;
    }

    bool VisitMemberExpr(clang::MemberExpr* member) {
        if (const auto* field = llvm::dyn_cast<clang::FieldDecl>(member->getMemberDecl()))
            see(field);
        else if (const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(member->getMemberDecl()))
            use(method, member->getMemberLoc(), called_.count(member) != 0);
        return true;
    }

    bool VisitDeclRefExpr(clang::DeclRefExpr* name) {
        if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(name->getDecl()))
            use(function, name->getLocation(), called_.count(name) != 0);
        else if (llvm::isa<clang::VarDecl>(name->getDecl()) &&
                 annotated(name->getDecl(), guided_text))
            facts_.mark =
                facts_.mark == nullptr ? llvm::cast<clang::VarDecl>(name->getDecl()) : facts_.mark;
        else if (closure_of_.count(name->getDecl()) != 0 && called_.count(name) == 0)
            leaves_.insert(closure_of_[name->getDecl()]);
        return true;
    }

    bool VisitCallExpr(clang::CallExpr* call) {
        called_.insert(call->getCallee()->IgnoreParenImpCasts());
        // closure(...): the closure is the first argument of its operator().
        if (const auto* op = llvm::dyn_cast<clang::CXXOperatorCallExpr>(call))
            if (op->getOperator() == clang::OO_Call)
                called_.insert(op->getArg(0)->IgnoreParenImpCasts());
        return true;
    }

    bool VisitCXXConstructExpr(clang::CXXConstructExpr* construct) {
        use(construct->getConstructor(), construct->getLocation(), true);
        return true;
    }

    bool VisitVarDecl(clang::VarDecl* variable) {
        if (!variable->hasInit()) return true;
        const auto* closure =
            llvm::dyn_cast<clang::LambdaExpr>(variable->getInit()->IgnoreUnlessSpelledInSource());
        if (closure == nullptr || variable->hasGlobalStorage()) return true;
        closure_of_[variable] = closure;
        called_.insert(closure);
        return true;
    }

    bool VisitLambdaExpr(clang::LambdaExpr* closure) {
        closures_.push_back(closure);
        // One in a default argument belongs to all who leave the argument out.
        if (called_.count(closure) == 0 || used_.isValid()) leaves_.insert(closure);
        return true;
    }

    bool TraverseConstructorInitializer(clang::CXXCtorInitializer* initializer) {
        if (initializer->isAnyMemberInitializer() && initializer->isWritten())
            see(initializer->getAnyMember());
        if (!initializer->isWritten()) return TraverseStmt(initializer->getInit());
        return RecursiveASTVisitor::TraverseConstructorInitializer(initializer);
    }

    void finish() {
        for (const auto* closure : closures_)
            facts_.closures.emplace_back(closure, leaves_.count(closure) == 0);
    }

  private:
    void see(const clang::FieldDecl* field) {
        if (facts_.mark == nullptr && types_.is_marked(field)) facts_.mark = field;
        if (facts_.managed_member == nullptr && types_.is_managed(field->getParent()))
            facts_.managed_member = field;
    }
    void use(const clang::FunctionDecl* function, clang::SourceLocation where, bool call) {
        if (used_.isValid())
            facts_.uses.push_back({function, used_, call, where});
        else
            facts_.uses.push_back({function, where, call, {}});
    }
    // A default argument or a default member initializer, which may contain itself.
    void visit_default(clang::Expr* text, clang::SourceLocation used) {
        if (text == nullptr || !defaults_.insert(text).second) return;
        const clang::SourceLocation outer = used_;
        if (used_.isInvalid()) used_ = used;
        TraverseStmt(text);
        used_ = outer;
    }

    body_facts& facts_;
    marked_types& types_;
    llvm::DenseSet<const clang::Expr*> called_;
    llvm::DenseMap<const clang::ValueDecl*, const clang::LambdaExpr*> closure_of_;
    llvm::DenseSet<const clang::LambdaExpr*> leaves_;
    std::vector<const clang::LambdaExpr*> closures_;
    llvm::DenseSet<const clang::Expr*> defaults_; // seen
    // In a default argument or member initializer: where it is left out.
    clang::SourceLocation used_;
};

} // namespace

body_facts facts_of(const clang::FunctionDecl* function, marked_types& types) {
    body_facts facts;
    body_visitor visitor(facts, types);
    if (const auto* constructor = llvm::dyn_cast<clang::CXXConstructorDecl>(function))
        for (auto* initializer : constructor->inits())
            visitor.TraverseConstructorInitializer(initializer);
    visitor.TraverseStmt(function->getBody());
    visitor.finish();
    return facts;
}

body_facts facts_of(clang::Stmt* statement, marked_types& types) {
    body_facts facts;
    body_visitor visitor(facts, types);
    visitor.TraverseStmt(statement);
    visitor.finish();
    return facts;
}

} // namespace obase::frontend
