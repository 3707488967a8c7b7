// SPDX-License-Identifier: MIT
//
// Where the module polls. Every cycle of the program must reach a poll, through calls and through branches:
//
//   calls     a function polls at its entry if it is part of a cycle of calls in the module, or if it makes a call that is
//             not known here: a cycle through several modules makes one in each of them.
//   branches  a loop polls at its header, unless each turn calls a function that does, or there are few turns.
//
// A poll is one comparison of a byte. What follows it on the way where it is set, is rare, and only there are translations
// out of date.
#include "handles.hpp"

#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace obase::handles {

namespace {

// So many turns of an innermost loop are no long time.
constexpr unsigned few_turns = 256;

class planner {
  public:
    explicit planner(module_state& state)
        : state_(state), library_(llvm::Triple(state.names.module.getTargetTriple())) {}

    llvm::MapVector<llvm::Function*, poll_plan> run() {
        llvm::CallGraph graph(state_.names.module);
        llvm::DenseSet<const llvm::Function*> recursive;
        for (auto scc = llvm::scc_begin(&graph); !scc.isAtEnd(); ++scc)
            if (scc.hasCycle())
                for (const llvm::CallGraphNode* node : *scc) recursive.insert(node->getFunction());
        llvm::MapVector<llvm::Function*, poll_plan> plans;
        for (llvm::Function* f : state_.bodies) {
            poll_plan& plan = plans[f];
            plan.at_entry = !is_thunk(*f) && (recursive.contains(f) || calls_unknown(*f));
            if (plan.at_entry && f->isDefinitionExact()) state_.surely_polls.insert(f);
        }
        for (auto& [f, plan] : plans) plan.headers = headers_of(*f);
        find_silent(plans);
        return plans;
    }

  private:
    bool is_unknown(const llvm::CallBase& call) const {
        if (!state_.is_safepoint(call) || state_.known.contains(&call)) return false;
        const llvm::Function* callee = call.getCalledFunction();
        if (callee != nullptr && callee->getName().starts_with(runtime::prefix)) return false;
        return callee == nullptr || !callee->isDefinitionExact() ||
               !state_.bodies.contains(const_cast<llvm::Function*>(callee));
    }
    bool calls_unknown(const llvm::Function& f) const {
        for (const llvm::BasicBlock& block : f)
            for (const llvm::Instruction& i : block)
                if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
                    call != nullptr && is_unknown(*call))
                    return true;
        return false;
    }

    bool surely_polls(const llvm::BasicBlock& block) const {
        for (const llvm::Instruction& i : block)
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i))
                if (const llvm::Function* callee = call->getCalledFunction();
                    callee != nullptr && (state_.surely_polls.contains(callee) ||
                                          callee == state_.names.online.getCallee()))
                    return true;
        return false;
    }

    bool must_poll(const llvm::Loop& loop, const llvm::DominatorTree& dominators,
                   llvm::ScalarEvolution& evolution) const {
        if (loop.isInnermost()) {
            const unsigned most = evolution.getSmallConstantMaxTripCount(&loop);
            if (most != 0 && most <= few_turns) return false;
        }
        llvm::SmallVector<llvm::BasicBlock*, 4> latches;
        loop.getLoopLatches(latches);
        for (const llvm::BasicBlock* block : loop.blocks())
            if (surely_polls(*block) && llvm::all_of(latches, [&](const llvm::BasicBlock* latch) {
                    return dominators.dominates(block, latch);
                }))
                return false;
        return true;
    }

    llvm::SmallVector<llvm::BasicBlock*, 8> headers_of(llvm::Function& f) const {
        llvm::SmallVector<llvm::BasicBlock*, 8> found;
        llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>, 16> edges;
        llvm::FindFunctionBackedges(f, edges);
        if (edges.empty()) return found;
        llvm::DominatorTree dominators(f);
        llvm::LoopInfo loops(dominators);
        llvm::AssumptionCache assumptions(f);
        llvm::TargetLibraryInfo library(library_, &f);
        llvm::ScalarEvolution evolution(f, library, assumptions, dominators, loops);
        llvm::SetVector<llvm::BasicBlock*> headers;
        for (const llvm::Loop* loop : loops.getLoopsInPreorder())
            if (must_poll(*loop, dominators, evolution)) headers.insert(loop->getHeader());
        for (const auto& [from, to] : edges)
            if (!loops.isLoopHeader(to)) headers.insert(const_cast<llvm::BasicBlock*>(to));
        for (llvm::BasicBlock* block : headers)
            if (!block->isEHPad()) found.push_back(block);
        return found;
    }

    // Functions that never poll: no poll of their own, and calls of such functions only.
    void find_silent(const llvm::MapVector<llvm::Function*, poll_plan>& plans) {
        llvm::SmallVector<llvm::Function*, 32> left;
        for (const auto& [f, plan] : plans)
            if (!plan.at_entry && plan.headers.empty() && f->isDefinitionExact()) left.push_back(f);
        for (bool changed = true; changed;) {
            changed = false;
            for (llvm::Function*& f : left) {
                if (f == nullptr || may_poll(*f)) continue;
                state_.never_polls.insert(f);
                f = nullptr;
                changed = true;
            }
        }
    }
    bool may_poll(const llvm::Function& f) const {
        for (const llvm::BasicBlock& block : f)
            for (const llvm::Instruction& i : block)
                if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
                    call != nullptr && state_.is_safepoint(*call))
                    return true;
        return false;
    }

    module_state& state_;
    llvm::TargetLibraryInfoImpl library_;
};

llvm::CallInst* poll_before(const runtime& names, llvm::Instruction* where) {
    llvm::IRBuilder<> build(where);
    llvm::Value* wanted = build.CreateICmpNE(
        build.CreateLoad(build.getInt8Ty(), names.poll_wanted, true), build.getInt8(0));
    llvm::MDBuilder weights(where->getContext());
    llvm::Instruction* end = llvm::SplitBlockAndInsertIfThen(
        wanted, where->getIterator(), false, weights.createBranchWeights(1, 1U << 20));
    build.SetInsertPoint(end);
    llvm::CallInst* call = build.CreateCall(names.kept_call("obase_handles_poll_framed", false));
    call->addFnAttr(llvm::Attribute::NoUnwind);
    return call;
}

} // namespace

llvm::MapVector<llvm::Function*, poll_plan> plan_polls(module_state& state) {
    return planner(state).run();
}

llvm::SmallVector<llvm::CallInst*, 8> insert_polls(module_state& state, llvm::Function& f,
                                                   const poll_plan& plan) {
    llvm::SmallVector<llvm::CallInst*, 8> made;
    for (llvm::BasicBlock* header : plan.headers)
        made.push_back(poll_before(state.names, &*header->getFirstInsertionPt()));
    if (plan.at_entry) {
        llvm::BasicBlock& first = f.getEntryBlock();
        made.push_back(poll_before(state.names, &*first.getFirstNonPHIOrDbgOrAlloca()));
    }
    return made;
}

} // namespace obase::handles
