// SPDX-License-Identifier: MIT
//
// obase-rewrite: from sources with marked pointers to sources that say what the passes do
// (obase/marked_access.h), for people who want to see or to keep it. --help has the arguments.
//
// Exit status: 0 written; 1 refused, nothing written; 2 the command line was not understood.
#include "edits.hpp"
#include "manner.hpp"
#include "output.hpp"
#include "places.hpp"
#include "rewriter.hpp"

#include "compiler/frontend/analysis.hpp"

#include "clang/Frontend/FrontendActions.h"
#include "clang/Frontend/TextDiagnosticPrinter.h"
#include "clang/Tooling/CompilationDatabase.h"
#include "clang/Tooling/Tooling.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace obase::rewrite {

namespace {

constexpr int exit_failure = 1;
constexpr int exit_usage = 2;

constexpr char help[] =
    R"(Usage: obase-rewrite --out=DIRECTORY [options] SOURCE... -- COMPILER-ARGUMENTS
       obase-rewrite --out=DIRECTORY [options] -p BUILD-DIRECTORY SOURCE...

Writes the sources, and the headers of the project that they include, with the accesses of marked
pointers (obase/marked.h) as calls of obase/marked_access.h. Any compiler takes the result; link
libobase. Nothing is written if something is refused.

  --out=DIRECTORY   where the result goes; the folders below the root are kept
  --root=DIRECTORY  only files below it are changed; the working directory if not given
  --marks=FILE      marks from outside the source (docs/compiler.md); may be given more than once
  --protocol=NAME   arming (default) or atc; the same for all of a program
  --no-lines        no #line directives: errors and debuggers show the written files
  --no-escapes      do not let obase-clang look for addresses that outlive their operations
  -p DIRECTORY      where compile_commands.json lies
  --help            this text

Exit status: 0 done, 1 refused or failed, 2 the command line was not understood.
)";

struct settings {
    std::string out;
    std::string root; // absolute once it is parsed
    std::string build;
    std::vector<std::string> marks;
    std::vector<std::string> sources;
    manner how;
    bool escapes = true;
};

class consumer : public frontend::analysis {
  public:
    consumer(clang::CompilerInstance& compiler, frontend::outside_marks marks, edits& to,
             const settings& given)
        : analysis(compiler, std::move(marks)), to_(to), given_(given) {}

  private:
    void checked(frontend::unit& whole) override {
        if (compiler_.getDiagnostics().hasErrorOccurred()) return;
        places where(whole.ast, to_, given_.root);
        where.read_all();
        rewrite_unit(whole, where, given_.how);
    }

    edits& to_;
    const settings& given_;
};

class action : public clang::ASTFrontendAction {
  public:
    action(const frontend::outside_marks& marks, edits& to, const settings& given)
        : marks_(marks), to_(to), given_(given) {}

  private:
    std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                          llvm::StringRef) override {
        return std::make_unique<consumer>(compiler, marks_, to_, given_);
    }

    const frontend::outside_marks& marks_;
    edits& to_;
    const settings& given_;
};

class actions : public clang::tooling::FrontendActionFactory {
  public:
    actions(const frontend::outside_marks& marks, edits& to, const settings& given)
        : marks_(marks), to_(to), given_(given) {}
    std::unique_ptr<clang::FrontendAction> create() override {
        return std::make_unique<action>(marks_, to_, given_);
    }

  private:
    const frontend::outside_marks& marks_;
    edits& to_;
    const settings& given_;
};

int usage_error(const std::string& what) {
    llvm::errs() << "obase-rewrite: " << what << "\nTry 'obase-rewrite --help'.\n";
    return exit_usage;
}
int failure(const std::string& what) {
    llvm::errs() << "obase-rewrite: " << what << '\n';
    return exit_failure;
}

// Empty if all is well.
std::string parse(int count, const char** arguments, settings& given) {
    for (int i = 1; i < count; ++i) {
        const llvm::StringRef argument = arguments[i];
        llvm::StringRef value = argument;
        const auto takes = [&](llvm::StringRef name, std::string& to) {
            if (!value.consume_front(name)) return false;
            to = value.str();
            return true;
        };
        std::string mark;
        std::string name;
        if (takes("--out=", given.out) || takes("--root=", given.root)) continue;
        if (takes("--marks=", mark)) {
            given.marks.push_back(mark);
        } else if (takes("--protocol=", name)) {
            if (name != "arming" && name != "atc")
                return "'" + argument.str() + "' names no protocol; there are arming and atc";
            given.how.on = name == "atc" ? protocol::atc : protocol::arming;
        } else if (argument == "--no-lines") {
            given.how.lines = false;
        } else if (argument == "--no-escapes") {
            given.escapes = false;
        } else if (argument == "-p") {
            if (++i == count) return "-p needs the directory of compile_commands.json";
            given.build = arguments[i];
        } else if (argument.starts_with("-")) {
            return "'" + argument.str() +
                   "' is none of --out=, --root=, --marks=, --protocol=, --no-lines, --no-escapes, "
                   "-p, --help";
        } else {
            given.sources.push_back(argument.str());
        }
    }
    if (given.out.empty()) return "--out=DIRECTORY is missing";
    if (given.sources.empty()) return "no source is named";
    return {};
}

// The folder that this program lies in.
llvm::SmallString<256> own_directory(const char* program) {
    llvm::SmallString<256> path(
        llvm::sys::fs::getMainExecutable(program, reinterpret_cast<void*>(&own_directory)));
    llvm::sys::path::remove_filename(path);
    return path;
}

// Where the headers of obase are: beside this program, or in the tree it was built from.
std::string include_directory(const char* program) {
    llvm::SmallString<256> beside = own_directory(program);
    llvm::sys::path::append(beside, "..", "include");
    llvm::SmallString<256> header(beside);
    llvm::sys::path::append(header, "obase", "marked_access.h");
    return llvm::sys::fs::exists(header) ? beside.str().str() : OBASE_SOURCE_INCLUDE;
}

// Where an address goes in the program as a whole the passes know: the original is compiled with
// them. Empty if they have nothing against it.
std::string look_for_escapes(const clang::tooling::CompilationDatabase& commands,
                             const settings& given, const char* program) {
    llvm::SmallString<256> here;
    if (const auto failed = llvm::sys::fs::current_path(here)) return failed.message();
    const auto absolute = [&](llvm::StringRef path) {
        llvm::SmallString<256> whole(path);
        llvm::sys::fs::make_absolute(here, whole);
        return whole.str().str();
    };
    for (const std::string& source : given.sources) {
        llvm::SmallString<256> driver = own_directory(program);
        llvm::sys::path::append(
            driver, llvm::sys::path::extension(source) == ".c" ? "obase-clang" : "obase-clang++");
        if (!llvm::sys::fs::can_execute(driver))
            return "addresses that outlive their operations are looked for by " +
                   driver.str().str() + ", which is not there; --no-escapes goes on without";
        const std::string file = absolute(source);
        for (const auto& command : commands.getCompileCommands(file)) {
            const auto line = clang::tooling::getClangStripOutputAdjuster()(
                clang::tooling::getClangSyntaxOnlyAdjuster()(command.CommandLine, file), file);
            std::vector<std::string> all{driver.str().str()};
            for (const std::string& marks : given.marks)
                all.push_back("--obase-marks=" + absolute(marks));
            for (std::size_t i = 1; i < line.size(); ++i)
                if (line[i] != "-fsyntax-only") all.push_back(line[i]);
            all.insert(all.end(), {"-w", "-gline-tables-only", "-c", "-o", "/dev/null"});
            const std::vector<llvm::StringRef> words(all.begin(), all.end());
            if (const auto failed = llvm::sys::fs::set_current_path(command.Directory))
                return command.Directory + ": " + failed.message();
            std::string wrong;
            const int status =
                llvm::sys::ExecuteAndWait(driver, words, std::nullopt, {}, 0, 0, &wrong);
            if (const auto failed = llvm::sys::fs::set_current_path(here))
                return here.str().str() + ": " + failed.message();
            if (!wrong.empty()) return wrong;
            if (status != 0) return "nothing was written";
        }
    }
    return {};
}

int run(int count, const char** arguments) {
    for (int i = 1; i < count && llvm::StringRef(arguments[i]) != "--"; ++i)
        if (llvm::StringRef(arguments[i]) == "--help") {
            llvm::outs() << help;
            return 0;
        }
    std::string wrong;
    // Takes what is behind -- out of the arguments.
    std::unique_ptr<clang::tooling::CompilationDatabase> commands =
        clang::tooling::FixedCompilationDatabase::loadFromCommandLine(count, arguments, wrong);
    settings given;
    if (const std::string what = parse(count, arguments, given); !what.empty())
        return usage_error(what);
    if (commands == nullptr) {
        if (given.build.empty()) return usage_error("neither compiler arguments behind -- nor -p");
        commands = clang::tooling::CompilationDatabase::loadFromDirectory(given.build, wrong);
        if (commands == nullptr) return failure(wrong);
    }
    frontend::outside_marks marks;
    for (const std::string& file : given.marks)
        if (const std::string what = marks.read(file); !what.empty()) return failure(what);
    llvm::SmallString<256> real_root;
    const std::string named = given.root.empty() ? "." : given.root;
    if (const std::error_code failed = llvm::sys::fs::real_path(named, real_root))
        return failure(named + ": " + failed.message());
    given.root = real_root.str().str();

    const std::string include = include_directory(arguments[0]);
    const auto adjust = [&](const clang::tooling::CommandLineArguments& command, llvm::StringRef) {
        clang::tooling::CommandLineArguments all = command;
        all.insert(all.begin() + 1,
                   {std::string("-resource-dir=") + OBASE_CLANG_RESOURCES, "-idirafter", include});
        return all;
    };
    edits changes;
    clang::tooling::ClangTool tool(*commands, given.sources);
    tool.appendArgumentsAdjuster(adjust);
    actions all(marks, changes, given);
    if (tool.run(&all) != 0) return exit_failure;
    if (given.escapes)
        if (const std::string what = look_for_escapes(*commands, given, arguments[0]);
            !what.empty())
            return failure(what);

    output result(changes, given.root, given.how);
    if (const std::string what = result.make(); !what.empty()) return failure(what);
    for (const std::string& source : given.sources) {
        llvm::SmallString<256> real;
        if (llvm::sys::fs::real_path(source, real) || !result.has(real))
            return failure(source + ": is not below " + given.root + "; give --root=DIRECTORY");
    }

    // Code that the changes did not reach does not compile.
    clang::tooling::ClangTool check(*commands, given.sources);
    check.appendArgumentsAdjuster(adjust);
    check.appendArgumentsAdjuster(clang::tooling::getInsertArgumentAdjuster(
        "-w", clang::tooling::ArgumentInsertPosition::END));
    for (const auto& [path, text] : result.files()) check.mapVirtualFile(path, text);
    if (check.run(clang::tooling::newFrontendActionFactory<clang::SyntaxOnlyAction>().get()) != 0)
        return failure(
            "the result does not compile, so nothing was written; write the places above in "
            "another way (docs/compiler.md has what can be rewritten)");
    if (const std::string what = result.write(given.out); !what.empty()) return failure(what);
    return 0;
}

} // namespace

} // namespace obase::rewrite

int main(int count, const char** arguments) { return obase::rewrite::run(count, arguments); }
