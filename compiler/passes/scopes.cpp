// SPDX-License-Identifier: MIT
//
// Operations: which functions enter and leave a scope, and the slots that end with a frame.
//
// An address from a marked field is good until the outermost scope ends, so a function that loads
// one must be in a scope that outlasts its use. A function that is called by operations only needs
// none of its own; any other function that loads from, or stores into, marked fields becomes an
// operation, even if no annotation says so. Nested scopes cost a few nanoseconds; a missing one
// would be a use after free.
//
// This is done before inlining: afterwards the function that has to leave is part of another.
#include "instrumentation.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/EscapeEnumerator.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

namespace obase::passes {

namespace {

// Stores of null need no scope: no address is used, and the slot need not be registered.
bool needs_scope(const llvm::Instruction& access) {
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&access)) {
        const auto* value = llvm::dyn_cast<llvm::Constant>(store->getValueOperand());
        return value == nullptr || !value->isNullValue();
    }
    return true;
}

// True if the caller knows the memory: the function did not find the address itself.
bool is_known_outside(const llvm::Value* address) {
    const llvm::Value* object = llvm::getUnderlyingObject(address, 0);
    while (is_field_annotation(*object))
        object = llvm::getUnderlyingObject(llvm::cast<llvm::CallBase>(object)->getArgOperand(0), 0);
    return llvm::isa<llvm::Argument, llvm::AllocaInst, llvm::Constant>(object);
}

// True if the access only null-tests a slot the caller already holds. Other accesses load the
// slot's address, or have found the memory, which only their scope keeps from being freed.
bool only_tests_its_callers(const llvm::Instruction& access) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(&access);
    return load != nullptr && is_no_access(*load) && is_known_outside(load->getPointerOperand());
}
bool passes_unprotected_pointer(const llvm::CallBase& call) {
    return llvm::any_of(call.args(), [](const llvm::Use& argument) {
        return argument->getType()->isPointerTy() && !is_known_outside(argument.get());
    });
}

bool calls_elsewhere(llvm::Function& f) {
    for (llvm::Instruction& i : llvm::instructions(f))
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
            call != nullptr && !llvm::isa<llvm::IntrinsicInst>(call) && !call->isInlineAsm() &&
            !is_free(*call) && !is_allocation(*call)) {
            const llvm::Function* callee = callee_of(*call);
            if (callee == nullptr || callee->isDeclaration()) return true;
        }
    return false;
}

// Calls by which the thread ends here.
llvm::SmallVector<llvm::CallBase*, 2> thread_ends(llvm::Function& f) {
    llvm::SmallVector<llvm::CallBase*, 2> found;
    for (llvm::Instruction& i : llvm::instructions(f))
        if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i))
            if (const llvm::Function* callee = callee_of(*call);
                callee != nullptr &&
                (callee->getName() == "pthread_exit" || callee->getName() == "thrd_exit"))
                found.push_back(call);
    return found;
}

struct ending { // slots that end with a function
    llvm::Value* begin;
    std::uint64_t bytes;
    bool of_object; // whose memory may be freed afterwards
};

// Of a destructor the deleting variant comes last, when the memory has been freed.
bool deletes(const llvm::Function& f) { return f.getName().ends_with("D0Ev"); }
// Where the front end says nothing: by its name.
bool is_destructor(const llvm::Function& f) {
    llvm::ItaniumPartialDemangler name;
    const std::string mangled = f.getName().str();
    if (name.partialDemangle(mangled.c_str()) || !name.isCtorOrDtor()) return false;
    const std::unique_ptr<char, decltype(&std::free)> base(
        name.getFunctionBaseName(nullptr, nullptr), &std::free);
    return base != nullptr && base.get()[0] == '~';
}

class inserter {
  public:
    inserter(llvm::Module& module, const slots& fields, const marks& said, const scope_plan& plan,
             problems& errors)
        : module_(module), fields_(fields), said_(said), plan_(plan), errors_(errors),
          pointer_(llvm::PointerType::getUnqual(module.getContext())),
          word_(llvm::Type::getInt64Ty(module.getContext())) {}

    void insert(llvm::Function& f) {
        const bool operation = plan_.operations.contains(&f);
        const llvm::SmallVector<ending, 4> ends = endings(f);
        // Where no exception is expected, no caller catches what these raise.
        if (f.doesNotThrow())
            for (llvm::CallBase* call : thread_ends(f))
                llvm::IRBuilder<>(call).CreateCall(
                    runtime("thread_ends", llvm::Type::getVoidTy(module_.getContext()), {}));
        if (!operation && ends.empty()) return;
        for (llvm::Instruction& i : llvm::instructions(f))
            if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
                call != nullptr && call->isMustTailCall()) {
                errors_.refuse(i, "a call that must be a tail call leaves an operation before it "
                                  "has ended; call without musttail");
                return;
            }
        llvm::FunctionCallee enter = runtime("enter", word_, {});
        llvm::FunctionCallee leave =
            runtime("leave", llvm::Type::getVoidTy(module_.getContext()), {word_});
        const auto ends_slots = [this](const ending& end) {
            return runtime(end.of_object ? "destroyed" : "forget",
                           llvm::Type::getVoidTy(module_.getContext()), {pointer_, word_});
        };
        scope_calls calls{};
        if (operation) {
            llvm::BasicBlock& entry = f.getEntryBlock();
            llvm::IRBuilder<> top(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
            calls.enter = top.CreateCall(enter);
            // By which the audit names the operation.
            if (llvm::DISubprogram* function = f.getSubprogram(); function != nullptr)
                calls.enter->setDebugLoc(llvm::DILocation::get(
                    module_.getContext(), function->getScopeLine(), 1, function));
        }
        // Else exceptions would find C's personality, which C++ does not inline.
        if (!f.hasPersonalityFn() && !f.doesNotThrow() && f.getName().starts_with("_Z"))
            f.setPersonalityFn(llvm::cast<llvm::Constant>(
                module_
                    .getOrInsertFunction(
                        "__gxx_personality_v0",
                        llvm::FunctionType::get(llvm::Type::getInt32Ty(module_.getContext()), true))
                    .getCallee()));
        const auto end_at = [&](llvm::IRBuilder<>& here) {
            for (const ending& end : ends)
                here.CreateCall(ends_slots(end),
                                {end.begin, llvm::ConstantInt::get(word_, end.bytes)});
            if (operation) calls.leaves.push_back(here.CreateCall(leave, {calls.enter}));
        };
        llvm::EscapeEnumerator exits(f, "obase.leave");
        while (llvm::IRBuilder<>* here = exits.Next()) end_at(*here);
        if (operation) made_.push_back(std::move(calls));
    }

    std::vector<scope_calls> take() { return std::move(made_); }

  private:
    llvm::FunctionCallee runtime(llvm::StringRef name, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Type*> parameters) {
        llvm::FunctionCallee f = module_.getOrInsertFunction(
            runtime_name(module_, name), llvm::FunctionType::get(result, parameters, false));
        llvm::cast<llvm::Function>(f.getCallee())->setDoesNotThrow();
        return f;
    }

    llvm::SmallVector<ending, 4> endings(llvm::Function& f) {
        llvm::SetVector<llvm::AllocaInst*> variables;
        for (llvm::Instruction& i : llvm::instructions(f)) {
            if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&i);
                variable != nullptr && (fields_.variables.contains(variable) ||
                                        fields_.in_type(variable->getAllocatedType())))
                variables.insert(variable);
            if (llvm::AllocaInst* variable = annotated_variable(i)) variables.insert(variable);
        }
        llvm::SmallVector<ending, 4> ends;
        for (llvm::AllocaInst* variable : variables) {
            const auto bytes = variable->getAllocationSize(module_.getDataLayout());
            if (!variable->isStaticAlloca() || !bytes || bytes->isScalable()) {
                errors_.refuse(*variable, "an array of variable length has marked fields; take "
                                          "one of fixed length, or malloc");
                continue;
            }
            never_shared(*variable);
            ends.push_back({variable, bytes->getFixedValue(), false});
        }
        // The slots of an object end with its destructor, in which they may be left as they are
        // after what they held is gone.
        if (!deletes(f) &&
            (said_.destructors.contains(&f) || (fields_.members.contains(&f) && is_destructor(f))))
            if (const std::uint64_t bytes = std::max(f.getParamDereferenceableBytes(0),
                                                     f.getParamDereferenceableOrNullBytes(0));
                bytes != 0)
                ends.push_back({f.getArg(0), bytes, true});
        if (!variables.empty() && f.hasFnAttribute(llvm::Attribute::SanitizeAddress))
            stays_on_the_stack(f);
        return ends;
    }

    // ASan puts variables elsewhere to find uses after return, and unmaps that with the thread. The
    // runtime forgets the stack of a thread that ends, and nothing besides. ASan leaves functions
    // with inline assembly alone.
    static void stays_on_the_stack(llvm::Function& f) {
        llvm::BasicBlock& entry = f.getEntryBlock();
        llvm::IRBuilder<> top(&entry, entry.getFirstNonPHIOrDbgOrAlloca());
        auto* type = llvm::FunctionType::get(top.getVoidTy(), false);
        top.CreateCall(type, llvm::InlineAsm::get(type, "", "", /*hasSideEffects=*/true));
    }

    // Else the frame could have another variable in the same place before the function ends.
    static void never_shared(llvm::AllocaInst& variable) {
        llvm::SmallVector<llvm::Instruction*, 8> lifetimes;
        for (llvm::User* user : variable.users())
            if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(user);
                call != nullptr && call->isLifetimeStartOrEnd())
                lifetimes.push_back(call);
        for (llvm::Instruction* i : lifetimes) i->eraseFromParent();
    }

    llvm::Module& module_;
    const slots& fields_;
    const marks& said_;
    const scope_plan& plan_;
    problems& errors_;
    llvm::Type* pointer_;
    llvm::Type* word_;
    std::vector<scope_calls> made_;
};

} // namespace

bool is_called_inside_only(const llvm::Function& f, const marks& said) {
    switch (said.of(f)) {
    case role::entry:
        return false;
    case role::internal:
        return true;
    case role::unknown:
        break;
    }
    return f.hasLocalLinkage() && for_each_call(f, [](llvm::CallBase&) {});
}

scope_plan plan_scopes(llvm::Module& module, const slots& fields, const marks& said,
                       problems& errors) {
    scope_plan plan;
    llvm::SetVector<llvm::Function*> touching;     // marked fields, themselves or by what they call
    llvm::DenseSet<const llvm::Function*> needing; // a scope, unless they are called in one
    for (const llvm::Instruction* access : fields.accesses)
        if (needs_scope(*access)) {
            auto* f = const_cast<llvm::Function*>(access->getFunction());
            touching.insert(f);
            if (!only_tests_its_callers(*access)) needing.insert(f);
        }
    for (llvm::Function& f : module) {
        if (f.isDeclaration()) continue;
        if (said.of(f) == role::entry && calls_elsewhere(f))
            touching.insert(&f), needing.insert(&f);
        if (touching.contains(&f) && calls_elsewhere(f)) needing.insert(&f);
    }
    for (std::size_t i = 0; i < touching.size(); ++i) {
        llvm::Function& f = *touching[i];
        const bool inside = is_called_inside_only(f, said);
        for_each_call(f, [&](llvm::CallBase& call) {
            llvm::Function* caller = call.getFunction();
            // An entry may find the memory that it has another look at, which opens a scope too late.
            const bool finds = said.of(*caller) == role::entry && passes_unprotected_pointer(call);
            if (inside || finds) needing.insert(caller);
            if (inside || finds || said.of(*caller) == role::internal) touching.insert(caller);
        });
    }
    for (llvm::Function* f : touching)
        if (needing.contains(f) && !is_called_inside_only(*f, said)) plan.operations.insert(f);
    for (llvm::Function* f : plan.operations) {
        if (f->isPresplitCoroutine())
            errors.refuse(*f,
                          "an operation on marked fields cannot be a coroutine: a scope ends in "
                          "the thread and at the depth where it began; load in a function that "
                          "the coroutine calls");
        for (llvm::Instruction& i : llvm::instructions(*f))
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
                call != nullptr && call->hasFnAttr(llvm::Attribute::ReturnsTwice))
                errors.refuse(i, "setjmp in an operation on marked fields: longjmp would skip the "
                                 "end of a scope; use it outside of the operation");
    }
    return plan;
}

std::vector<scope_calls> insert_scopes(llvm::Module& module, const slots& fields, const marks& said,
                                       const scope_plan& plan, problems& errors) {
    inserter all(module, fields, said, plan, errors);
    for (llvm::Function& f : module)
        if (!f.isDeclaration()) all.insert(f);
    for (const llvm::GlobalVariable& variable : module.globals())
        if (variable.isThreadLocal() && fields.in_type(variable.getValueType()))
            errors.refuse("the thread-local variable " + variable.getName() +
                          " has marked fields; they would end with the thread unseen, so allocate "
                          "it");
    return all.take();
}

} // namespace obase::passes
