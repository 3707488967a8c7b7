// SPDX-License-Identifier: MIT
//
// Walks: loops that follow a marked field from object to object,
//
//     while (n->key != key) n = n->next;
//
// are unrolled once. The way of an armed word needs the address of the field once more, so the register that `n` is in
// cannot become that of the next object: a copy in each step. With two steps in the loop the two objects have a
// register each, in turns, and nothing is copied.
//
// Works on what the passes have made of the loads, behind the optimizer's own work on loops: a call of
// obase_marked_load in an innermost loop, about an address in the object that the loop goes on from.
#include "instrumentation.hpp"

#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/OptimizationRemarkEmitter.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

namespace obase::passes {

namespace {

constexpr unsigned most_instructions = 48; // of a loop, which is there twice then

// Whether the loop goes on with what the call returns, where that is what it went on with before.
bool follows(const llvm::Loop& loop, const llvm::CallBase& load) {
    llvm::SmallVector<const llvm::Value*, 8> work{&load};
    llvm::DenseSet<const llvm::Value*> next; // what becomes of it
    while (!work.empty()) {
        const llvm::Value* v = work.pop_back_val();
        if (!next.insert(v).second) continue;
        for (const llvm::User* user : v->users())
            if (llvm::isa<llvm::PHINode>(user) && loop.contains(llvm::cast<llvm::PHINode>(user)))
                work.push_back(user);
    }
    const auto* object = llvm::dyn_cast<llvm::PHINode>(
        llvm::getUnderlyingObject(load.getArgOperand(0), /*MaxLookup=*/6));
    return object != nullptr && loop.contains(object) && next.contains(object);
}

bool is_walk(const llvm::Loop& loop) {
    unsigned instructions = 0;
    bool found = false;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& i : *block) {
            if (++instructions > most_instructions) return false;
            const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
            if (call == nullptr) continue;
            const llvm::Function* callee = call->getCalledFunction();
            found = found || (callee != nullptr && callee->getName() == "obase_marked_load" &&
                              follows(loop, *call));
        }
    return found;
}

} // namespace

llvm::PreservedAnalyses unroll_walks::run(llvm::Function& f,
                                          llvm::FunctionAnalysisManager& analyses) {
    if (f.getParent()->getFunction("obase_marked_load") == nullptr || f.hasOptSize())
        return llvm::PreservedAnalyses::all();
    auto& loops = analyses.getResult<llvm::LoopAnalysis>(f);
    llvm::SmallVector<llvm::Loop*, 4> walks;
    for (llvm::Loop* loop : loops.getLoopsInPreorder())
        if (loop->isInnermost() && is_walk(*loop)) walks.push_back(loop);
    if (walks.empty()) return llvm::PreservedAnalyses::all();
    auto& dominators = analyses.getResult<llvm::DominatorTreeAnalysis>(f);
    auto& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(f);
    auto& assumptions = analyses.getResult<llvm::AssumptionAnalysis>(f);
    auto& target = analyses.getResult<llvm::TargetIRAnalysis>(f);
    auto& remarks = analyses.getResult<llvm::OptimizationRemarkEmitterAnalysis>(f);
    for (llvm::Loop* loop : walks) {
        llvm::simplifyLoop(loop, &dominators, &loops, &evolution, &assumptions, nullptr, false);
        if (!loop->isLoopSimplifyForm()) continue;
        llvm::formLCSSARecursively(*loop, dominators, &loops, &evolution);
        llvm::UnrollLoopOptions twice{};
        twice.Count = 2;
        twice.Force = true; // with the tests of both steps
        llvm::UnrollLoop(loop, twice, &loops, &evolution, &dominators, &assumptions, &target,
                         &remarks, /*PreserveLCSSA=*/true);
    }
    return llvm::PreservedAnalyses::none();
}

} // namespace obase::passes
