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
#include "analysis.hpp"
#include "outside_marks.hpp"
#include "visibility_file.hpp"

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

class consumer : public analysis {
  public:
    consumer(clang::CompilerInstance& compiler, std::string source, settings given)
        : analysis(compiler, std::move(given.marks)), source_(std::move(source)),
          out_(std::move(given.out)) {}

  private:
    void checked(unit& whole) override {
        if (out_.empty()) return;
        const std::string wrong = write_visibility_file(whole, out_, source_, marks_);
        if (!wrong.empty()) says_.refuse({}, "out", wrong, {});
    }

    std::string source_;
    std::string out_;
};

class action : public clang::PluginASTAction {
  protected:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                          llvm::StringRef source) override {
        // A header's tree: no code is made of it, and the including source decides. What would be
        // decided here, without the uses, would be in the tree for good.
        if (compiler.getFrontendOpts().ProgramAction == clang::frontend::GeneratePCH)
            return std::make_unique<clang::ASTConsumer>();
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
