// SPDX-License-Identifier: MIT
//
// Calls. Direct calls of functions of this module go to their bodies. A call of another one goes to a weak *thunk* with the
// name that its body would have: where the linker finds the body, it takes that. The thunk keeps the objects that it hands to
// foreign code at home, and is offline meanwhile. An indirect call looks at how the function begins. Functions of the C
// library (known.cpp) get what they need: those whose names the C standard reserves where they are called, the others in
// their thunks, for they may be the program's own.
#include "handles.hpp"
#include "prologue.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Local.h>

#include <map>
#include <tuple>

namespace obase::handles {

namespace {

// The allocation functions, in whose place instrumented code calls the runtime's.
constexpr const char* allocating[] = {
    "malloc",   "calloc", "realloc", "free",  "aligned_alloc",      "posix_memalign",
    "memalign", "valloc", "pvalloc", "cfree", "malloc_usable_size", "reallocarray",
};

// Operators new and delete of C++, by what takes their place in their thunks.
enum class operation { none, make, make_aligned, make_or_null, free };
operation operation_of(llvm::StringRef name) {
    if (name == "_Znwm" || name == "_Znam") return operation::make;
    if (name == "_ZnwmSt11align_val_t" || name == "_ZnamSt11align_val_t")
        return operation::make_aligned;
    if (name == "_ZnwmRKSt9nothrow_t" || name == "_ZnamRKSt9nothrow_t")
        return operation::make_or_null;
    if (name.starts_with("_ZdlPv") || name.starts_with("_ZdaPv")) return operation::free;
    return operation::none;
}

bool is_heapless(const llvm::Value* address) {
    const llvm::Value* object = llvm::getUnderlyingObject(address, 0);
    if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object))
        return argument->hasByValAttr();
    return llvm::isa<llvm::AllocaInst, llvm::GlobalValue, llvm::ConstantData>(object);
}

class converter {
  public:
    explicit converter(module_state& state)
        : state_(state), module_(state.names.module), context_(module_.getContext()),
          pointer_(llvm::PointerType::getUnqual(context_)) {}

    void run() {
        // Thunks are made meanwhile; they are complete then.
        const llvm::SmallVector<llvm::Function*, 64> bodies(state_.bodies.begin(),
                                                            state_.bodies.end());
        for (llvm::Function* f : bodies) {
            llvm::SmallVector<llvm::CallBase*, 32> calls;
            for (llvm::BasicBlock& block : *f)
                for (llvm::Instruction& i : block)
                    if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) calls.push_back(call);
            for (llvm::CallBase* call : calls) convert(*call);
        }
    }

  private:
    void convert(llvm::CallBase& call) {
        if (call.isInlineAsm()) return;
        llvm::Value* target = call.getCalledOperand()->stripPointerCasts();
        if (auto* alias = llvm::dyn_cast<llvm::GlobalAlias>(target);
            alias != nullptr && !alias->isInterposable())
            target = alias->getAliaseeObject();
        auto* callee = llvm::dyn_cast<llvm::Function>(target);
        if (callee == nullptr) return through_pointer(call);
        if (callee->isIntrinsic() || callee->getName().starts_with(runtime::prefix)) return;
        if (llvm::Function* body = state_.body_of.lookup(callee)) {
            if (may_be_replaced(*callee)) return through_pointer(call);
            call.setCalledOperand(body);
            return;
        }
        const llvm::StringRef name = callee->getName();
        const known_function* known = callee->isDeclaration() ? look_up(name, call) : nullptr;
        const bool variadic = call.getFunctionType()->isVarArg();
        // What blocks has a thunk, which comes online again if the thread is cancelled in it.
        if (known != nullptr && (variadic || (known->iso && (!known->blocks || known->wrapped))))
            return apply(call, *known);
        if (call.hasFnAttr(llvm::Attribute::ReturnsTwice)) return returning_twice(call);
        if (!callee->isDeclaration() || callee->isVarArg() ||
            call.getFunctionType() != callee->getFunctionType() ||
            (known == nullptr && operation_of(name) == operation::none && is_far(*callee)))
            return through_pointer(call);
        call.setCalledOperand(&thunk_of(*callee));
    }

    // A declaration in a library that may be loaded: where it is found is decided then, not by who links the library.
    static bool is_far(const llvm::Function& callee) {
        return is_library(*callee.getParent()) && !callee.isDSOLocal() &&
               callee.hasDefaultVisibility();
    }

    // The function with the name of the body of `callee`, which is not in this module.
    llvm::Function& thunk_of(llvm::Function& callee) {
        const std::string name = body_name(callee.getName());
        if (llvm::Function* made = module_.getFunction(name)) return *made;
        auto* thunk = llvm::Function::Create(callee.getFunctionType(),
                                             llvm::GlobalValue::WeakAnyLinkage, name, &module_);
        thunk->setAttributes(callee.getAttributes());
        thunk->removeFnAttr(llvm::Attribute::Memory);
        thunk->removeFnAttr(llvm::Attribute::NoBuiltin);
        thunk->removeFnAttr(llvm::Attribute::AllocKind);
        thunk->removeFnAttr(llvm::Attribute::AllocSize);
        thunk->addFnAttr(llvm::Attribute::NoInline);
        thunk->setCallingConv(callee.getCallingConv());
        thunk->setVisibility(llvm::GlobalValue::HiddenVisibility);
        thunk->setDSOLocal(true);
        llvm::IRBuilder<> build(llvm::BasicBlock::Create(context_, "", thunk));
        llvm::SmallVector<llvm::Value*, 8> arguments;
        for (llvm::Argument& argument : thunk->args()) arguments.push_back(&argument);

        if (llvm::Value* result = allocated(build, callee, arguments)) {
            build.CreateRet(result->getType()->isVoidTy() ? nullptr : result);
            return *thunk;
        }
        const known_function* known = look_up(callee.getName(), *callee.getFunctionType());
        thunk->setUWTableKind(llvm::UWTableKind::Async);
        if (known != nullptr && known->blocks) { // a thread may be cancelled there, which unwinds
            callee.removeFnAttr(llvm::Attribute::NoUnwind);
            thunk->removeFnAttr(llvm::Attribute::NoUnwind);
        }
        // A body that the linker does not see by its name: of a library, or of a definition that may be replaced.
        auto* inside = llvm::BasicBlock::Create(context_, "", thunk);
        auto* foreign = llvm::BasicBlock::Create(context_, "", thunk);
        build.CreateCondBr(begins_as_entry(build, &callee), inside, foreign,
                           llvm::MDBuilder(context_).createBranchWeights(1, 100));
        build.SetInsertPoint(inside);
        llvm::CallInst* there =
            build.CreateCall(callee.getFunctionType(), body_of(build, &callee), arguments);
        there->setCallingConv(callee.getCallingConv());
        there->setAttributes(of_arguments(callee.getAttributes(), arguments.size()));
        return_with(build, there);
        build.SetInsertPoint(foreign);
        if (known == nullptr) {
            call_foreign(build, *thunk, callee.getFunctionType(), &callee, arguments,
                         callee.getAttributes().removeFnAttributes(context_),
                         callee.getCallingConv(), !callee.doesNotThrow());
        } else {
            llvm::CallInst* call = build.CreateCall(&callee, arguments);
            call->setCallingConv(callee.getCallingConv());
            call->setAttributes(callee.getAttributes().removeFnAttributes(context_));
            return_with(build, call);
            if (known->blocks && !known->wrapped && !callee.doesNotThrow())
                thunk->setPersonalityFn(state_.names.cleaning_personality());
            apply(*call, *known);
        }
        state_.bodies.insert(thunk);
        return *thunk;
    }

    static void return_with(llvm::IRBuilder<>& build, llvm::CallBase* call) {
        if (call->getType()->isVoidTy())
            build.CreateRetVoid();
        else
            build.CreateRet(call);
    }

    llvm::AttributeList of_arguments(const llvm::AttributeList& all, std::size_t count) const {
        llvm::SmallVector<llvm::AttributeSet, 8> sets;
        for (unsigned i = 0; i < count; ++i) sets.push_back(all.getParamAttrs(i));
        return llvm::AttributeList::get(context_, {}, all.getRetAttrs(), sets);
    }

    // The end of a function: a call with objects that stay at home, offline. Exceptions, and what cancels a thread,
    // go through it.
    void call_foreign(llvm::IRBuilder<>& build, llvm::Function& in, llvm::FunctionType* type,
                      llvm::Value* target, llvm::ArrayRef<llvm::Value*> arguments,
                      const llvm::AttributeList& attributes, llvm::CallingConv::ID convention,
                      bool unwinds) {
        for (llvm::Value* argument : arguments) keep(build, argument);
        build.CreateCall(state_.names.offline);
        llvm::CallBase* call = nullptr;
        if (unwinds) {
            in.setPersonalityFn(state_.names.cleaning_personality());
            auto* after = llvm::BasicBlock::Create(context_, "", &in);
            auto* thrown = llvm::BasicBlock::Create(context_, "", &in);
            call = build.CreateInvoke(type, target, after, thrown, arguments);
            build.SetInsertPoint(thrown);
            llvm::LandingPadInst* pad = cleanup(build);
            build.CreateCall(state_.names.online);
            build.CreateResume(pad);
            build.SetInsertPoint(after);
        } else {
            call = build.CreateCall(type, target, arguments);
        }
        call->setCallingConv(convention);
        call->setAttributes(attributes);
        build.CreateCall(state_.names.online);
        return_with(build, call);
    }

    llvm::LandingPadInst* cleanup(llvm::IRBuilder<>& build) {
        llvm::LandingPadInst* pad =
            build.CreateLandingPad(llvm::StructType::get(pointer_, build.getInt32Ty()), 0);
        pad->setCleanup(true);
        return pad;
    }

    // The runtime's in the place of an operator new or delete.
    llvm::Value* allocated(llvm::IRBuilder<>& build, llvm::Function& callee,
                           llvm::ArrayRef<llvm::Value*> arguments) {
        const operation wanted = operation_of(callee.getName());
        llvm::Type* word = build.getInt64Ty();
        if (wanted == operation::none || arguments.empty()) return nullptr;
        if (wanted == operation::free)
            return build.CreateCall(
                state_.names.named("obase_handles_free",
                                   llvm::FunctionType::get(build.getVoidTy(), {pointer_}, false)),
                {arguments[0]});
        llvm::Value* made = nullptr;
        if (wanted == operation::make_aligned)
            made = build.CreateCall(
                state_.names.named("obase_handles_aligned_alloc",
                                   llvm::FunctionType::get(pointer_, {word, word}, false)),
                {arguments[1], arguments[0]});
        else
            made = build.CreateCall(
                state_.names.named("obase_handles_malloc",
                                   llvm::FunctionType::get(pointer_, {word}, false)),
                {arguments[0]});
        if (wanted == operation::make_or_null) return made;
        // Without memory the program's own handler, or an exception.
        llvm::Function* thunk = build.GetInsertBlock()->getParent();
        auto* failed = llvm::BasicBlock::Create(context_, "", thunk);
        auto* done = llvm::BasicBlock::Create(context_, "", thunk);
        build.CreateCondBr(build.CreateIsNull(made), failed, done);
        build.SetInsertPoint(failed);
        build.CreateRet(build.CreateCall(&callee, arguments));
        build.SetInsertPoint(done);
        return made;
    }

    void keep(llvm::IRBuilder<>& build, llvm::Value* argument) {
        if (argument->getType() == pointer_ && !is_heapless(argument) &&
            !llvm::isa<llvm::Function>(argument))
            build.CreateCall(state_.names.keep, {argument});
    }

    // A call that is an invoke cannot be one of a known function: none throws.
    static llvm::CallBase& without_unwinding(llvm::CallBase& call) {
        auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&call);
        return invoke != nullptr ? *llvm::changeToCall(invoke) : call;
    }

    void apply(llvm::CallBase& maybe_invoke, const known_function& known) {
        llvm::CallBase& call = without_unwinding(maybe_invoke);
        if (auto* plain = llvm::dyn_cast<llvm::CallInst>(&call))
            plain->setTailCallKind(llvm::CallInst::TCK_None);
        // It is no longer a function whose effects LLVM knows.
        call.addFnAttr(llvm::Attribute::NoBuiltin);
        state_.known[&call] = &known;
        if (known.wrapped) {
            auto wrapper =
                state_.names.named(("obase_handles_c_" + known.name).str(), call.getFunctionType());
            call.setCalledOperand(wrapper.getCallee());
            call.setCallingConv(llvm::CallingConv::C);
            return; // it goes offline by itself
        }
        if (call.hasFnAttr(llvm::Attribute::ReturnsTwice)) return returning_twice(call);
        llvm::IRBuilder<> before(&call);
        const auto letter = [&](unsigned i) {
            return known.arguments.empty()
                       ? '-'
                       : known.arguments[std::min<std::size_t>(i, known.arguments.size() - 1)];
        };
        for (unsigned i = 0; i < call.arg_size(); ++i)
            if (letter(i) == 'k') keep(before, call.getArgOperand(i));
        if (!known.blocks) return;
        llvm::SmallVector<std::pair<unsigned, llvm::Value*>, 4> pinned;
        for (unsigned i = 0; i < call.arg_size(); ++i) {
            llvm::Value* argument = call.getArgOperand(i);
            if (letter(i) != 't' || argument->getType() != pointer_ || is_heapless(argument))
                continue;
            pinned.emplace_back(i, argument);
            call.setArgOperand(i, before.CreateCall(state_.names.pin, {argument}));
        }
        before.CreateCall(state_.names.offline);
        llvm::Instruction* next = call.getNextNode();
        llvm::CallBase* waits = &call;
        if (call.getFunction()->hasPersonalityFn() && is_thunk(*call.getFunction())) {
            auto* thrown = llvm::BasicBlock::Create(context_, "", call.getFunction());
            llvm::IRBuilder<> build(thrown);
            llvm::LandingPadInst* pad = cleanup(build);
            build.CreateCall(state_.names.online);
            for (const auto& [i, argument] : pinned)
                build.CreateCall(state_.names.unpin, {argument});
            build.CreateResume(pad);
            state_.known.erase(&call);
            auto* plain = llvm::cast<llvm::CallInst>(&call);
            llvm::BasicBlock* rest =
                llvm::changeToInvokeAndSplitBasicBlock(plain, thrown); // `call` is gone
            waits = llvm::cast<llvm::InvokeInst>(rest->getSinglePredecessor()->getTerminator());
            state_.known[waits] = &known;
        }
        llvm::IRBuilder<> after(next);
        after.CreateCall(state_.names.online);
        for (const auto& [i, argument] : pinned) {
            if (known.result == known_function::gives::same && known.of == i &&
                !waits->use_empty()) {
                llvm::Value* is = after.CreateICmpEQ(waits, waits->getArgOperand(i));
                auto* at_home =
                    llvm::cast<llvm::Instruction>(after.CreateSelect(is, argument, waits));
                waits->replaceUsesWithIf(at_home, [&](llvm::Use& use) {
                    return use.getUser() != at_home && use.getUser() != is;
                });
            }
            after.CreateCall(state_.names.unpin, {argument});
        }
    }

    // The state of the thread is that of the first return.
    void returning_twice(llvm::CallBase& call) {
        llvm::Function* f = call.getFunction();
        llvm::IRBuilder<> first(&f->getEntryBlock(), f->getEntryBlock().begin());
        llvm::AllocaInst* saved = first.CreateAlloca(first.getInt64Ty());
        llvm::IRBuilder<> before(&call);
        if (!state_.known.contains(&call))
            for (llvm::Value* argument : call.args()) keep(before, argument);
        before.CreateStore(before.CreateCall(state_.names.state), saved, true);
        llvm::IRBuilder<> after(call.getNextNode());
        after.CreateCall(state_.names.restore, {after.CreateLoad(after.getInt64Ty(), saved, true)});
    }

    // The function that the call goes to may have a body, and may not.
    void through_pointer(llvm::CallBase& call) {
        if (call.isMustTailCall() || call.getCallingConv() != llvm::CallingConv::C)
            return through_pointer_here(call);
        llvm::Value* target = call.getCalledOperand();
        llvm::IRBuilder<> build(&call);
        llvm::Value* has_body = begins_as_entry(build, target);
        llvm::BasicBlock* before = call.getParent();
        llvm::Instruction* inside =
            llvm::SplitBlockAndInsertIfThen(has_body, call.getIterator(), false,
                                            llvm::MDBuilder(context_).createBranchWeights(100, 1));
        build.SetInsertPoint(inside);
        llvm::Value* body = body_of(build, target);
        build.SetInsertPoint(&call);
        // foreign_call() needs the target besides: it is in a register that no body reads.
        llvm::PHINode* to = build.CreatePHI(pointer_, 2);
        to->addIncoming(body, inside->getParent());
        to->addIncoming(&foreign_call(call), before);
        llvm::SmallVector<llvm::Type*, 8> types{pointer_};
        llvm::SmallVector<llvm::Value*, 8> arguments{target};
        types.append(call.getFunctionType()->param_begin(), call.getFunctionType()->param_end());
        arguments.append(call.arg_begin(), call.arg_end());
        auto* type =
            llvm::FunctionType::get(call.getType(), types, call.getFunctionType()->isVarArg());
        llvm::CallBase* made = nullptr;
        if (auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&call))
            made = build.CreateInvoke(type, to, invoke->getNormalDest(), invoke->getUnwindDest(),
                                      arguments);
        else
            made = build.CreateCall(type, to, arguments);
        llvm::AttributeList attributes = shifted(call.getAttributes(), call.arg_size());
        for (const llvm::Attribute::AttrKind kind :
             {llvm::Attribute::NoReturn, llvm::Attribute::NoUnwind})
            if (call.hasFnAttr(kind)) attributes = attributes.addFnAttribute(context_, kind);
        made->setAttributes(attributes);
        made->copyMetadata(call, {llvm::LLVMContext::MD_prof});
        made->setDebugLoc(call.getDebugLoc());
        call.replaceAllUsesWith(made);
        call.eraseFromParent();
    }

    // As the code stands: for tail calls, and for conventions of calling with no register to spare. Foreign code is
    // not offline where the call ends the block: the thread is late meanwhile.
    void through_pointer_here(llvm::CallBase& call) {
        const bool at_end = call.isMustTailCall() || call.isTerminator();
        llvm::Value* target = call.getCalledOperand();
        llvm::IRBuilder<> build(&call);
        llvm::Value* has_body = begins_as_entry(build, target);
        llvm::Instruction *inside = nullptr, *foreign = nullptr;
        llvm::SplitBlockAndInsertIfThenElse(has_body, &call, &inside, &foreign);
        build.SetInsertPoint(inside);
        llvm::Value* body = body_of(build, target);
        build.SetInsertPoint(foreign);
        for (llvm::Value* argument : call.args()) keep(build, argument);
        if (!at_end) build.CreateCall(state_.names.offline);
        build.SetInsertPoint(&call);
        llvm::PHINode* to = build.CreatePHI(pointer_, 2);
        to->addIncoming(body, inside->getParent());
        to->addIncoming(target, foreign->getParent());
        call.setCalledOperand(to);
        if (at_end) return;
        if (auto* plain = llvm::dyn_cast<llvm::CallInst>(&call))
            plain->setTailCallKind(llvm::CallInst::TCK_None);
        if (llvm::isa<llvm::UnreachableInst>(call.getNextNode())) return;
        llvm::Instruction* back =
            llvm::SplitBlockAndInsertIfThen(build.CreateNot(has_body), call.getNextNode(), false);
        // The condition belongs after the call, where it is used; it needs nothing of it.
        build.SetInsertPoint(back);
        build.CreateCall(state_.names.online);
    }

    // Calls its first argument, which is in a register of its own, with the others, as a thunk does.
    llvm::Function& foreign_call(llvm::CallBase& call) {
        llvm::FunctionType* of = call.getFunctionType();
        const llvm::AttributeList of_call = of_arguments(call.getAttributes(), call.arg_size());
        const bool unwinds = !call.doesNotThrow();
        // Variable arguments are where others would be.
        llvm::SmallVector<llvm::Type*, 8> types{pointer_};
        for (llvm::Value* argument : call.args()) types.push_back(argument->getType());
        auto* type = llvm::FunctionType::get(of->getReturnType(), types, false);
        llvm::Function*& made = foreign_calls_[{of, type, of_call.getRawPointer(), unwinds}];
        if (made != nullptr) return *made;
        made = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "obase.foreign",
                                      &module_);
        made->setAttributes(shifted(of_call, call.arg_size()));
        made->addFnAttr(llvm::Attribute::NoInline);
        made->addFnAttr(llvm::Attribute::Cold);
        llvm::IRBuilder<> build(llvm::BasicBlock::Create(context_, "", made));
        llvm::SmallVector<llvm::Value*, 8> arguments;
        for (llvm::Argument& argument : made->args())
            if (argument.getArgNo() > 0) arguments.push_back(&argument);
        call_foreign(build, *made, of, made->getArg(0), arguments, of_call, llvm::CallingConv::C,
                     unwinds);
        return *made;
    }

    llvm::AttributeList shifted(const llvm::AttributeList& of, unsigned count) const {
        llvm::AttrBuilder apart(context_);
        apart.addAttribute(llvm::Attribute::Nest);
        llvm::SmallVector<llvm::AttributeSet, 8> sets{llvm::AttributeSet::get(context_, apart)};
        for (unsigned i = 0; i < count; ++i) sets.push_back(of.getParamAttrs(i));
        return llvm::AttributeList::get(context_, {}, of.getRetAttrs(), sets);
    }

    // Of code, which is nowhere on the heap.
    static llvm::LoadInst* load_of_code(llvm::IRBuilder<>& build, llvm::Type* type,
                                        llvm::Value* from) {
        llvm::LoadInst* made = build.CreateAlignedLoad(type, from, llvm::Align(1));
        made->setMetadata(reads_code, llvm::MDNode::get(build.getContext(), {}));
        return made;
    }
    static llvm::Value* begins_as_entry(llvm::IRBuilder<>& build, llvm::Value* target) {
        return build.CreateICmpEQ(load_of_code(build, build.getInt64Ty(), target),
                                  build.getInt64(prologue::word));
    }
    static llvm::Value* body_of(llvm::IRBuilder<>& build, llvm::Value* target) {
        llvm::Value* distance = load_of_code(
            build, build.getInt32Ty(),
            build.CreateConstGEP1_64(build.getInt8Ty(), target, prologue::distance_at));
        return build.CreateGEP(build.getInt8Ty(), target,
                               build.CreateSExt(distance, build.getInt64Ty()));
    }

    module_state& state_;
    llvm::Module& module_;
    llvm::LLVMContext& context_;
    llvm::PointerType* pointer_;
    // By the type of the target and their own, the arguments' attributes, and whether they unwind.
    std::map<std::tuple<llvm::FunctionType*, llvm::FunctionType*, void*, bool>, llvm::Function*>
        foreign_calls_;
};

} // namespace

void convert_allocation(module_state& state) {
    llvm::Module& module = state.names.module;
    for (const llvm::StringRef name : allocating) {
        llvm::Function* plain = module.getFunction(name);
        if (plain == nullptr || !plain->isDeclaration()) continue;
        auto ours = state.names.named((runtime::prefix + name).str(), plain->getFunctionType());
        plain->replaceAllUsesWith(ours.getCallee());
    }
}

void convert_calls(module_state& state) { converter(state).run(); }

bool module_state::is_safepoint(const llvm::CallBase& call) const {
    if (call.isInlineAsm()) return false;
    if (const known_function* function = known.lookup(&call))
        return function->polls || function->blocks;
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr) return true;
    if (callee->isIntrinsic() || never_polls.contains(callee)) return false;
    if (!callee->getName().starts_with(runtime::prefix)) return true;
    // Of the runtime's own, those that renew the thread's epoch, or may.
    for (llvm::FunctionCallee renewing :
         {names.online, names.enter, names.leave, names.restore, names.keep, names.pin})
        if (callee == renewing.getCallee()) return true;
    return false;
}

} // namespace obase::handles
