// SPDX-License-Identifier: MIT
//
// The protocol: chosen on the command line, kept in the module, the same in the whole program, and what
// else a translation unit tells the runtime.
//
// Two translation units of different protocols would take each other's words for something else. Where
// their code is linked as LLVM's (-flto) the linker compares the module flag and refuses. Elsewhere each
// unit has a constructor, before all those of the program, in which the runtime compares.
#include "instrumentation.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

namespace obase::passes {

namespace {

constexpr llvm::StringLiteral flag = "obase.protocol";
constexpr llvm::StringLiteral prefix = "obase_marked_";
constexpr int before_the_programs_own = 100; // those of programs begin at 101

} // namespace

void choose_protocol(llvm::Module& module, protocol chosen) {
    module.addModuleFlag(llvm::Module::Error, flag, static_cast<std::uint32_t>(chosen));
}

protocol protocol_of(const llvm::Module& module) {
    const auto* chosen =
        llvm::mdconst::dyn_extract_or_null<llvm::ConstantInt>(module.getModuleFlag(flag));
    return chosen != nullptr ? static_cast<protocol>(chosen->getZExtValue()) : protocol::arming;
}

std::string runtime_name(const llvm::Module& module, llvm::StringRef name) {
    return (prefix + (protocol_of(module) == protocol::atc ? "atc_" : "") + name).str();
}

void tell_runtime(llvm::Module& module) {
    bool calls_any = false;
    bool for_threads = false;
    for (const llvm::Function& f : module) {
        calls_any = calls_any || (f.isDeclaration() && f.getName().starts_with(prefix));
        for_threads = for_threads || f.hasFnAttribute(llvm::Attribute::SanitizeThread);
    }
    if (!calls_any) return;
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* nothing = llvm::Type::getVoidTy(context);
    llvm::Type* pointer = llvm::PointerType::getUnqual(context);
    auto* tell = llvm::Function::createWithDefaultAttr(
        llvm::FunctionType::get(nothing, false), llvm::GlobalValue::InternalLinkage,
        module.getDataLayout().getProgramAddressSpace(), "obase.tell_runtime", &module);
    llvm::IRBuilder<> here(llvm::BasicBlock::Create(context, "", tell));
    llvm::Constant* unit = here.CreateGlobalString(module.getSourceFileName());
    here.CreateCall(
        module.getOrInsertFunction((prefix + "unit").str(), nothing, pointer, pointer),
        {here.CreateGlobalString(protocol_of(module) == protocol::atc ? "atc" : "arming"), unit});
    if (for_threads)
        here.CreateCall(
            module.getOrInsertFunction((prefix + "unit_thread_sanitized").str(), nothing, pointer),
            {unit});
    here.CreateRetVoid();
    llvm::appendToGlobalCtors(module, tell, before_the_programs_own);
}

} // namespace obase::passes
