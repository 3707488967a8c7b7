// SPDX-License-Identifier: MIT
//
// longjmp past operations: a helper that none of them knows jumps to a setjmp outside, and the frames between, which
// would have left, are gone. Without more the collector would wait for their operation for ever.
//
//     i = setjmp(env)        %before = call i64 @obase_marked_depth()
//                            %i = call i32 @_setjmp(ptr @env)
//                            br (%i != 0), back, done
//                      back: call void @obase_marked_returned(i64 %before)
//
// setjmp in an operation is refused (scopes.cpp); one in a function that is called by one, and compiled elsewhere,
// finds the same depth when it returns.
#include "instrumentation.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace obase::passes {

void end_operations_at_jumps(llvm::Module& module) {
    llvm::SmallVector<llvm::CallInst*, 4> jumps;
    for (llvm::Function& f : module)
        for (llvm::Instruction& i : llvm::instructions(f))
            if (auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
                call != nullptr && call->hasFnAttr(llvm::Attribute::ReturnsTwice) &&
                call->getType()->isIntegerTy(32))
                jumps.push_back(call);
    if (jumps.empty()) return;
    llvm::Type* word = llvm::Type::getInt64Ty(module.getContext());
    llvm::Type* nothing = llvm::Type::getVoidTy(module.getContext());
    llvm::FunctionCallee depth = module.getOrInsertFunction(runtime_name(module, "depth"), word);
    llvm::FunctionCallee returned =
        module.getOrInsertFunction(runtime_name(module, "returned"), nothing, word);
    for (llvm::FunctionCallee f : {depth, returned})
        llvm::cast<llvm::Function>(f.getCallee())->setDoesNotThrow();
    for (llvm::CallInst* call : jumps) {
        llvm::BasicBlock& entry = call->getFunction()->getEntryBlock();
        llvm::IRBuilder<> top(&entry, entry.begin());
        // Volatile: registers are those of the first return.
        llvm::AllocaInst* before = top.CreateAlloca(word);
        llvm::IRBuilder<> here(call);
        here.CreateStore(here.CreateCall(depth), before, /*isVolatile=*/true);
        llvm::IRBuilder<> after(call->getNextNode());
        after.SetCurrentDebugLocation(call->getDebugLoc());
        llvm::Value* back = after.CreateIsNotNull(call);
        llvm::Instruction* end =
            llvm::SplitBlockAndInsertIfThen(back, after.GetInsertPoint(), /*Unreachable=*/false);
        llvm::IRBuilder<> there(end);
        there.SetCurrentDebugLocation(call->getDebugLoc());
        there.CreateCall(returned, {there.CreateLoad(word, before, /*isVolatile=*/true)});
    }
}

} // namespace obase::passes
