// SPDX-License-Identifier: MIT
//
// The trust file: what the passes accept without being able to check it.
#include "instrumentation.hpp"

#include "compiler/report_path.hpp"

#include <llvm/Demangle/Demangle.h>
#include <llvm/Support/CommandLine.h>

namespace obase::passes {

namespace {

// clang reads it if the plugin was loaded by -fplugin, too: -fpass-plugin comes after the options.
const llvm::cl::opt<std::string>
    path("obase-trust", llvm::cl::desc("write down what the passes of obase accept on trust"),
         llvm::cl::value_desc("file or directory"));

} // namespace

void trust::accept(const llvm::CallBase& call, unsigned argument, bool is_address) {
    const llvm::Function* callee = callee_of(call);
    std::string row =
        callee != nullptr ? "call\t" + llvm::demangle(callee->getName().str()) : "pointer\t-";
    row += "\t" + place_of(call) + "\t" + llvm::demangle(call.getFunction()->getName().str()) +
           "\targument " + std::to_string(argument + 1) +
           (is_address ? "" : ", a variable that holds an address");
    rows_.insert(std::move(row));
}

void trust::write(const llvm::Module& module, problems& errors) const {
    if (path.empty()) return;
    const llvm::StringRef source = module.getSourceFileName();
    const std::string wrong =
        write_report(path.getValue(), source, "trust", [&](llvm::raw_ostream& out) {
            out << "# obase trust, format 1\nunit\t" << source << '\n';
            for (const std::string& row : rows_) out << row << '\n';
        });
    if (!wrong.empty()) errors.refuse("the trust file cannot be written: " + wrong);
}

} // namespace obase::passes
