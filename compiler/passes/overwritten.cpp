// SPDX-License-Identifier: MIT
//
// Memory with slots in it that the program unmaps, or clears as bytes: an object that is used again, a variable
// in a loop, which begins anew each time round. The store is no access of the slots, and what their
// words hold besides an address (counts, under atc) would be lost; so they end before it. They begin
// again with the next store of a managed address.
//
// Bytes of anything else than null pointers are refused (slot_addresses.cpp, and the front end).
#include "instrumentation.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace obase::passes {

namespace {

// True if the memory, as far as can be seen, has had no slot before.
bool is_fresh(const llvm::Value& object, const slots& fields,
              const llvm::DenseSet<const llvm::AllocaInst*>& annotated) {
    if (const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&object))
        return !annotated.contains(variable) &&
               !fields.variables.contains(const_cast<llvm::AllocaInst*>(variable)) &&
               !fields.in_type(variable->getAllocatedType());
    if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&object))
        return !global->isDeclaration() && !fields.in_type(global->getValueType());
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&object);
    return call != nullptr && is_allocation(*call);
}

// The effect of an instruction on memory, as bytes.
struct byte_write {
    llvm::Instruction* by = nullptr; // null: none
    llvm::Value* to = nullptr;
    llvm::Value* bytes = nullptr;
    llvm::Value* value = nullptr; // of each byte; null: copied from elsewhere
};

// The functions of the C library that do the same are calls where they are told not to be built in,
// and, with _FORTIFY_SOURCE, where the size of the object is not known before it is inlined.
byte_write byte_write_of(llvm::Instruction& i) {
    if (auto* set = llvm::dyn_cast<llvm::MemSetInst>(&i))
        return {set, set->getRawDest(), set->getLength(), set->getValue()};
    if (auto* copy = llvm::dyn_cast<llvm::MemIntrinsic>(&i))
        return {copy, copy->getRawDest(), copy->getLength(), nullptr};
    auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    const llvm::Function* callee = call != nullptr ? callee_of(*call) : nullptr;
    if (callee == nullptr) return {};
    const llvm::StringRef name = callee->getName();
    if ((name == "memset" || name == "__memset_chk") && call->arg_size() >= 3)
        return {call, call->getArgOperand(0), call->getArgOperand(2), call->getArgOperand(1)};
    // A mapping that goes.
    if ((name == "bzero" || name == "munmap" || name == "explicit_bzero" ||
         name == "__explicit_bzero_chk") &&
        call->arg_size() >= 2)
        return {call, call->getArgOperand(0), call->getArgOperand(1),
                llvm::ConstantInt::get(llvm::Type::getInt8Ty(i.getContext()), 0)};
    return {};
}

bool may_have_slots(const byte_write& done, const slots& fields,
                    const llvm::DenseSet<const llvm::AllocaInst*>& annotated) {
    const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(done.bytes);
    if (bytes != nullptr && bytes->getZExtValue() < sizeof(void*)) return false;
    llvm::SmallVector<const llvm::Value*, 4> objects;
    llvm::getUnderlyingObjects(done.to, objects, nullptr, 0);
    const auto fresh = [&](const llvm::Value* o) { return is_fresh(*o, fields, annotated); };
    if (llvm::all_of(objects, fresh)) return false;
    if (done.value != nullptr) {
        const auto* value = llvm::dyn_cast<llvm::Constant>(done.value);
        return value != nullptr && value->isNullValue();
    }
    // An initializer. Whatever else is copied has no slots.
    return llvm::all_of(objects,
                        [](const llvm::Value* o) { return llvm::isa<llvm::AllocaInst>(o); });
}

} // namespace

void end_overwritten_slots(llvm::Module& module, const slots& fields, const marks& said) {
    llvm::DenseSet<const llvm::AllocaInst*> annotated;
    llvm::SmallVector<byte_write, 8> found;
    for (llvm::Function& f : module) {
        // Without an access in the file, what is a part of operations has to do with marked fields.
        if (fields.accesses.empty() && said.of(f) == role::unknown) continue;
        annotated.clear();
        for (llvm::Instruction& i : llvm::instructions(f))
            if (const llvm::AllocaInst* variable = annotated_variable(i))
                annotated.insert(variable);
        for (llvm::Instruction& i : llvm::instructions(f))
            if (const byte_write done = byte_write_of(i);
                done.by != nullptr && may_have_slots(done, fields, annotated))
                found.push_back(done);
    }
    if (found.empty()) return;
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* const word = llvm::Type::getInt64Ty(context);
    llvm::FunctionCallee forget = module.getOrInsertFunction(
        runtime_name(module, "forget"),
        llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                {llvm::PointerType::getUnqual(context), word}, false));
    llvm::cast<llvm::Function>(forget.getCallee())->setDoesNotThrow();
    for (const byte_write& done : found)
        llvm::IRBuilder<>(done.by).CreateCall(forget, {done.to, done.bytes});
}

} // namespace obase::passes
