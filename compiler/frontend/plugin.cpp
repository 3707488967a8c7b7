// SPDX-License-Identifier: MIT
//
// The clang plugin obase_visibility. It runs before the code generator, in the same compilation:
// each declaration gets its annotations before code is made of it, and when the translation unit is
// complete it is checked, and the visibility file is written.
//
//     clang++-19 -fplugin=obase_visibility.so [-fplugin-arg-obase_visibility-KEY=VALUE ...]
//
//     marks=FILE   marks from outside the source (outside_marks.hpp); may be given more than once
//     out=PATH     write the visibility file there; into it, if it is a directory
#include "annotations.hpp"
#include "checks.hpp"
#include "marked_types.hpp"
#include "outside_marks.hpp"
#include "report.hpp"
#include "unit_visitor.hpp"
#include "visibility.hpp"
#include "visibility_file.hpp"

#include "clang/AST/ASTConsumer.h"
#include "clang/AST/RecursiveASTVisitor.h"
#include "clang/Frontend/CompilerInstance.h"
#include "clang/Frontend/FrontendPluginRegistry.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace obase::frontend {

namespace {

struct settings {
    outside_marks marks;
    std::string out;
};

// Finds the functions and variables within a top-level declaration, namespaces and classes included.
class definitions : public clang::RecursiveASTVisitor<definitions> {
  public:
    definitions(marked_types& types, visibility& roles, const outside_marks& outside)
        : types_(types), roles_(roles), outside_(outside) {}

    bool TraverseDecl(clang::Decl* declaration) {
        if (declaration != nullptr && of_standard_library(declaration)) return true;
        return RecursiveASTVisitor::TraverseDecl(declaration);
    }
    bool VisitRecordDecl(clang::RecordDecl* record) {
        types_.look_at(record);
        return true;
    }
    bool VisitFunctionDecl(clang::FunctionDecl* function) {
        // Declarations, too: who calls it here must know.
        if (outside_.makes(function)) annotate(function, makes_text);
        roles_.look_at(function);
        return true;
    }
    bool VisitVarDecl(clang::VarDecl* variable) {
        if (variable->isFileVarDecl()) roles_.look_at(variable);
        return true;
    }

  private:
    marked_types& types_;
    visibility& roles_;
    const outside_marks& outside_;
};

class consumer : public clang::ASTConsumer {
  public:
    consumer(clang::CompilerInstance& compiler, std::string source, settings given)
        : compiler_(compiler), source_(std::move(source)), given_(std::move(given)),
          says_(compiler.getDiagnostics()), types_(given_.marks, says_),
          roles_(types_, given_.marks, says_) {}

    // As soon as a class is complete: what follows may use its fields.
    void HandleTagDeclDefinition(clang::TagDecl* tag) override {
        if (const auto* record = llvm::dyn_cast<clang::RecordDecl>(tag)) types_.look_at(record);
    }

    // The code generator gets the same declarations after this, and may make code of them at once.
    bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
        definitions look(types_, roles_, given_.marks);
        for (auto* declaration : group) look.TraverseDecl(declaration);
        return true;
    }

    void HandleTranslationUnit(clang::ASTContext& ast) override {
        // The tree of a program that is wrong anyway may be incomplete.
        if (compiler_.getDiagnostics().hasErrorOccurred()) return;
        roles_.finish();
        unit whole{ast, types_, roles_, says_};
        check_unit(whole);
        if (given_.out.empty()) return;
        const std::string wrong = write_visibility_file(whole, given_.out, source_, given_.marks);
        if (!wrong.empty()) says_.refuse({}, "out", wrong, {});
    }

  private:
    clang::CompilerInstance& compiler_;
    std::string source_;
    settings given_;
    report says_;
    marked_types types_;
    visibility roles_;
};

class action : public clang::PluginASTAction {
  protected:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                          llvm::StringRef source) override {
        // clang is done with the action after this call.
        return std::make_unique<consumer>(compiler, source.str(), std::move(given_));
    }

    bool ParseArgs(const clang::CompilerInstance& compiler,
                   const std::vector<std::string>& arguments) override {
        auto& diagnostics = compiler.getDiagnostics();
        const unsigned wrong =
            diagnostics.getCustomDiagID(clang::DiagnosticsEngine::Error, "obase_visibility: %0");
        for (const llvm::StringRef argument : arguments) {
            const auto [key, value] = argument.split('=');
            std::string failed;
            if (value.empty())
                failed = "'" + argument.str() + "' has no value";
            else if (key == "marks")
                failed = given_.marks.read(value);
            else if (key == "out")
                given_.out = value.str();
            else
                failed = "unknown argument '" + argument.str() + "'; there are marks= and out=";
            if (failed.empty()) continue;
            diagnostics.Report(wrong) << failed;
            return false;
        }
        return true;
    }

    ActionType getActionType() override { return AddBeforeMainAction; }

  private:
    settings given_;
};

const clang::FrontendPluginRegistry::Add<action>
    registered("obase_visibility",
               "finds the operations on marked fields, refuses what cannot work");

} // namespace

} // namespace obase::frontend
