// SPDX-License-Identifier: MIT
//
// The table by which the audit's reports (src/audit/places.hpp) name the marked field that an access is about: text in
// a section that is not loaded, so a program does not grow by it where it runs.
//
//     unit    SOURCE
//     field   NUMBER  NAME  TYPE  DECLARED-AT
//     site    KIND    NUMBER  FILE  LINE  COLUMN
//     shares  SYMBOL                               a function on marked fields, or a variable with some, that other
//                                                  units see
//
// An access is found by the row of clang's line table for the instruction, so it gets the place in the function
// that the passes have inlined it into: a line of <atomic> would be that of every atomic field.
#include "instrumentation.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugInfoMetadata.h>

namespace obase::passes {

namespace {

// The first annotation on the way back to where the address comes from.
const llvm::CallBase* annotation_of(const llvm::Value* address) {
    llvm::SmallVector<const llvm::Value*, 16> work{address};
    llvm::DenseSet<const llvm::Value*> seen{address};
    for (std::size_t i = 0; i < work.size(); ++i) {
        if (is_field_annotation(*work[i])) return llvm::cast<llvm::CallBase>(work[i]);
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(work[i]);
        if (!llvm::isa_and_nonnull<llvm::GetElementPtrInst, llvm::PHINode, llvm::SelectInst,
                                   llvm::CastInst>(instruction))
            continue;
        for (const llvm::Value* operand : instruction->operands())
            if (operand->getType()->isPointerTy() && seen.insert(operand).second)
                work.push_back(operand);
    }
    return nullptr;
}

// As a string of the assembler.
void append_quoted(std::string& to, llvm::StringRef text) {
    to += "\t.ascii \"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            (to += '\\') += c;
        else if (c == '\n')
            to += "\\n";
        else if (c == '\t')
            to += "\\t";
        else
            to += c;
    }
    to += "\"\n";
}

// The variable in which the field is that is accessed, or null.
const llvm::Value* variable_of(const llvm::Instruction& access) {
    const llvm::Value* at = llvm::getLoadStorePointerOperand(&access);
    if (at == nullptr) at = access.getOperand(0);
    while (at != nullptr) {
        at = llvm::getUnderlyingObject(at, 0);
        if (!is_field_annotation(*at)) return at;
        at = llvm::cast<llvm::CallBase>(at)->getArgOperand(0);
    }
    return nullptr;
}

llvm::StringRef access_kind(const llvm::Instruction& access) {
    if (llvm::isa<llvm::LoadInst>(access)) return "load";
    return llvm::isa<llvm::StoreInst>(access) ? "store" : "exchange";
}

} // namespace

llvm::StringRef about_access(const llvm::Instruction& access) {
    const llvm::Value* address = llvm::getLoadStorePointerOperand(&access);
    const llvm::CallBase* annotation =
        annotation_of(address != nullptr ? address : access.getOperand(0));
    return annotation != nullptr ? about_field(*annotation) : llvm::StringRef();
}

void make_site_table(llvm::Module& module, const slots& fields, const marks& said,
                     const scope_plan& plan) {
    llvm::MapVector<llvm::StringRef, unsigned> numbers;
    std::set<std::string> sites; // once each: a template has many instances
    std::set<llvm::StringRef> variables;
    for (llvm::Instruction* access : fields.accesses) {
        const llvm::DILocation* at = access->getDebugLoc().get();
        while (at != nullptr && at->getInlinedAt() != nullptr) at = at->getInlinedAt();
        if (const auto* variable =
                llvm::dyn_cast_or_null<llvm::GlobalVariable>(variable_of(*access));
            variable != nullptr && !variable->hasLocalLinkage())
            variables.insert(variable->getName());
        if (at == nullptr) continue;
        access->setDebugLoc(at);
        const llvm::StringRef about = about_access(*access);
        if (about.empty()) continue;
        const unsigned number =
            numbers.insert({about, static_cast<unsigned>(numbers.size())}).first->second;
        sites.insert(("site\t" + access_kind(*access) + "\t" + llvm::Twine(number) + "\t" +
                      at->getFilename() + "\t" + llvm::Twine(at->getLine()) + "\t" +
                      llvm::Twine(at->getColumn()) + "\n")
                         .str());
    }
    std::string text = ".pushsection .obase.sites,\"\",@progbits\n";
    append_quoted(text, "unit\t" + module.getSourceFileName() + "\n");
    for (const auto& [about, number] : numbers)
        append_quoted(text, ("field\t" + llvm::Twine(number) + "\t" + about + "\n").str());
    for (const std::string& site : sites) append_quoted(text, site);
    for (llvm::Function& f : module)
        if (!f.isDeclaration() && !f.hasLocalLinkage() && !f.hasAvailableExternallyLinkage() &&
            (plan.operations.contains(&f) || said.of(f) == role::internal))
            append_quoted(text, ("shares\t" + f.getName() + "\n").str());
    for (const llvm::StringRef variable : variables)
        append_quoted(text, ("shares\t" + variable + "\n").str());
    module.appendModuleInlineAsm(text + ".popsection\n");
}

} // namespace obase::passes
