// SPDX-License-Identifier: MIT
//
// Scopes of the arming protocol without calls: what obase::arming::scope is in a program that includes
// obase/arming.hpp, here as instructions. An operation on a marked pointer may be a few loads, of which
// two calls would be the greater part.
//
//   %outer = call i64 @obase_marked_enter()
// becomes
//            %thread = load ptr, ptr @obase::arming::context_      ; thread-local
//            br (%thread == null), slow, attached
//  attached: %old = load atomic i64, ptr %thread monotonic         ; scope_slot::epoch
//            br (%old == 0), first, done
//     first: br (%thread->fenced), slow, announce
//  announce: %now = load atomic i64, ptr %epoch acquire
//            store atomic i64 %now, ptr %thread release
//      slow: %s = call i64 @obase_marked_enter()
//      done: %outer = phi i64 [ %old ], [ 0 ], [ %s ]
//            fence syncscope("singlethread") seq_cst               ; word::compiler_fence()
//
//   call void @obase_marked_leave(i64 %outer)
// becomes
//            br (%outer == 0 and %thread->exit_work), slow, quick
//     quick: store atomic i64 %outer, ptr %thread release
//      slow: call void @obase_marked_leave(i64 %outer)
//
// The orders are those of obase/mobility/scope_slot.hpp, which has the argument; src/runtime/marked.cpp
// asserts the offsets. Where an exception leaves the operation, the call stays.
//
// Only for arming: the scopes of atc begin differently in each phase.
#include "instrumentation.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace obase::passes {

namespace {

// obase::arming::context_: the thread's scope_slot, and the global epoch's address.
constexpr llvm::StringLiteral context_name = "_ZN5obase6arming8context_E";
constexpr std::uint64_t epoch_address_in_context = 8;
// Of scope_slot; its epoch comes first.
constexpr std::uint64_t fenced_in_slot = 8;
constexpr std::uint64_t exit_work_in_slot = 9;

class expander {
  public:
    explicit expander(llvm::Module& module)
        : module_(module), context_(module.getContext()),
          pointer_(llvm::PointerType::getUnqual(context_)), word_(llvm::Type::getInt64Ty(context_)),
          flag_(llvm::Type::getInt8Ty(context_)), zero_(llvm::ConstantInt::get(word_, 0)),
          unlikely_(llvm::MDBuilder(context_).createBranchWeights(1, 2000)) {}

    void expand(const scope_calls& calls) {
        llvm::Value* thread = nullptr;
        llvm::Value* outer = expand_enter(*calls.enter, thread);
        for (llvm::CallInst* leave : calls.leaves)
            if (!llvm::isa<llvm::ResumeInst>(leave->getParent()->getTerminator()))
                expand_leave(*leave, outer, thread);
    }

  private:
    llvm::GlobalVariable* context_variable() {
        auto* v = llvm::cast<llvm::GlobalVariable>(module_.getOrInsertGlobal(
            context_name, llvm::StructType::get(context_, {pointer_, pointer_})));
        // A program that includes obase/arming.hpp has it already, with this model.
        if (!v->isThreadLocal()) v->setThreadLocalMode(llvm::GlobalValue::InitialExecTLSModel);
        return v;
    }

    llvm::Value* load_pointer(llvm::IRBuilder<>& here, llvm::Value* address) {
        return here.CreateAlignedLoad(pointer_, address, llvm::Align(8));
    }
    llvm::Value* load_word(llvm::IRBuilder<>& here, llvm::Value* address,
                           llvm::AtomicOrdering order) {
        auto* load = here.CreateAlignedLoad(word_, address, llvm::Align(8));
        load->setAtomic(order);
        return load;
    }
    void store_word(llvm::IRBuilder<>& here, llvm::Value* word, llvm::Value* address) {
        here.CreateAlignedStore(word, address, llvm::Align(8))
            ->setAtomic(llvm::AtomicOrdering::Release);
    }
    llvm::Value* is_set(llvm::IRBuilder<>& here, llvm::Value* thread, std::uint64_t offset) {
        llvm::Value* flag = here.CreateAlignedLoad(
            flag_, here.CreateConstInBoundsGEP1_64(flag_, thread, offset), llvm::Align(1));
        return here.CreateIsNotNull(flag);
    }

    // Returns what the call did; `thread` becomes the thread's scope_slot.
    llvm::Value* expand_enter(llvm::CallInst& call, llvm::Value*& thread) {
        llvm::Function& f = *call.getFunction();
        llvm::BasicBlock* const before = call.getParent();
        llvm::BasicBlock* const done = llvm::SplitBlock(before, call.getIterator());
        done->setName("obase.entered");
        const auto block = [&](const char* name) {
            return llvm::BasicBlock::Create(context_, name, &f, done);
        };
        llvm::BasicBlock* const attached = block("obase.attached");
        llvm::BasicBlock* const first = block("obase.first");
        llvm::BasicBlock* const announce = block("obase.announce");
        llvm::BasicBlock* const slow = block("obase.enter");
        before->getTerminator()->eraseFromParent();

        llvm::IRBuilder<> here(before);
        here.SetCurrentDebugLocation(call.getDebugLoc());
        llvm::Value* context = here.CreateThreadLocalAddress(context_variable());
        llvm::Value* known = load_pointer(here, context);
        here.CreateCondBr(here.CreateIsNull(known), slow, attached, unlikely_);
        here.SetInsertPoint(attached);
        llvm::Value* old = load_word(here, known, llvm::AtomicOrdering::Monotonic);
        here.CreateCondBr(here.CreateICmpEQ(old, zero_), first, done);
        here.SetInsertPoint(first);
        here.CreateCondBr(is_set(here, known, fenced_in_slot), slow, announce, unlikely_);
        here.SetInsertPoint(announce);
        llvm::Value* epoch = load_pointer(
            here, here.CreateConstInBoundsGEP1_64(flag_, context, epoch_address_in_context));
        store_word(here, load_word(here, epoch, llvm::AtomicOrdering::Acquire), known);
        here.CreateBr(done);
        here.SetInsertPoint(slow);
        llvm::Value* slowly = here.CreateCall(call.getCalledFunction());
        llvm::Value* made = load_pointer(here, context);
        here.CreateBr(done);

        here.SetInsertPoint(done, done->begin());
        llvm::PHINode* outer = here.CreatePHI(word_, 3);
        outer->addIncoming(old, attached);
        outer->addIncoming(zero_, announce);
        outer->addIncoming(slowly, slow);
        llvm::PHINode* slot = here.CreatePHI(pointer_, 3);
        slot->addIncoming(known, attached);
        slot->addIncoming(known, announce);
        slot->addIncoming(made, slow);
        here.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent,
                         llvm::SyncScope::SingleThread);
        call.replaceAllUsesWith(outer);
        call.eraseFromParent();
        thread = slot;
        return outer;
    }

    void expand_leave(llvm::CallInst& call, llvm::Value* outer, llvm::Value* thread) {
        llvm::IRBuilder<> here(&call);
        llvm::Value* has_work = here.CreateAnd(here.CreateICmpEQ(outer, zero_),
                                               is_set(here, thread, exit_work_in_slot));
        llvm::Instruction* slow = nullptr;
        llvm::Instruction* quick = nullptr;
        llvm::SplitBlockAndInsertIfThenElse(has_work, call.getIterator(), &slow, &quick, unlikely_);
        here.SetInsertPoint(quick);
        here.SetCurrentDebugLocation(call.getDebugLoc());
        store_word(here, outer, thread);
        call.moveBefore(slow);
    }

    llvm::Module& module_;
    llvm::LLVMContext& context_;
    llvm::PointerType* pointer_;
    llvm::Type* word_;
    llvm::Type* flag_;
    llvm::Constant* zero_;
    llvm::MDNode* unlikely_;
};

} // namespace

void inline_scopes(llvm::Module& module, llvm::ArrayRef<scope_calls> calls) {
    if (protocol_of(module) != protocol::arming) return;
    expander all(module);
    for (const scope_calls& one : calls) all.expand(one);
}

} // namespace obase::passes
