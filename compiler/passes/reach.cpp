// SPDX-License-Identifier: MIT
//
// Marks that do nothing: what is stored into the field comes from functions that allocate by themselves and are not
// known to, so nothing in it is managed and nothing moves. The program is right, and saves nothing.
#include "instrumentation.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/InstIterator.h>

namespace obase::passes {

namespace {

// A function of which a line says that it makes objects, and in which nothing is seen to allocate what it returns.
void warn_of_makers(const llvm::Module& module, const marks& said, problems& errors) {
    for (llvm::Function* twin : said.managing_twins) {
        marks one = said;
        one.managing_twins.clear();
        one.managing_twins.insert(twin);
        const allocations reach = find_allocations(module, {}, one);
        if (!reach.found.empty() || !reach.hiding.empty() || !reach.printed.empty()) continue;
        for (const llvm::Instruction& i : llvm::instructions(*twin))
            if (llvm::isa<llvm::ReturnInst>(i)) {
                errors.warn(
                    i,
                    "nothing that '" + twin->getName().rsplit('.').first +
                        "' returns is seen to be allocated, so none of it will move. It has a line "
                        "'makes' "
                        "in the marks file; if it calls a function that allocates, so should that");
                break;
            }
    }
}

} // namespace

void warn_of_unreached(const llvm::Module& module, const slots& fields, const marks& said,
                       problems& errors) {
    warn_of_makers(module, said, errors);
    llvm::MapVector<llvm::StringRef, llvm::SetVector<llvm::Instruction*>> of_field;
    for (llvm::Instruction* access : fields.accesses)
        if (const llvm::StringRef about = about_access(*access); !about.empty())
            of_field[about].insert(access);
    for (auto& [about, accesses] : of_field) {
        slots one;
        one.accesses = accesses;
        const allocations reach = find_allocations(module, one, said);
        if (!reach.found.empty() || !reach.hiding.empty()) continue;
        for (const llvm::CallBase* call : reach.others) {
            const llvm::Function* callee = callee_of(*call);
            errors.warn(*call, "no object in the marked field '" + about.split('\t').first +
                                   "' is managed, so none will move: what " +
                                   (callee != nullptr ? "'" + callee->getName() + "'"
                                                      : llvm::Twine("a call through a pointer")) +
                                   " returns is not. If it allocates, a line 'makes' in the marks "
                                   "file says so; else allocate by malloc or new");
        }
    }
}

} // namespace obase::passes
