// SPDX-License-Identifier: MIT
//
// Memory with slots in it that the program clears as bytes: an object that is used again, a variable
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

// Whether the memory, as far as can be seen, has had no slot before.
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

bool may_have_slots(const llvm::MemIntrinsic& clearing, const slots& fields,
                    const llvm::DenseSet<const llvm::AllocaInst*>& annotated) {
    const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(clearing.getLength());
    if (bytes != nullptr && bytes->getZExtValue() < sizeof(void*)) return false;
    llvm::SmallVector<const llvm::Value*, 4> objects;
    llvm::getUnderlyingObjects(clearing.getRawDest(), objects, nullptr, 0);
    const auto fresh = [&](const llvm::Value* o) { return is_fresh(*o, fields, annotated); };
    if (llvm::all_of(objects, fresh)) return false;
    if (const auto* set = llvm::dyn_cast<llvm::MemSetInst>(&clearing)) {
        const auto* value = llvm::dyn_cast<llvm::Constant>(set->getValue());
        return value != nullptr && value->isNullValue();
    }
    // An initializer. Whatever else is copied has no slots.
    return llvm::all_of(objects,
                        [](const llvm::Value* o) { return llvm::isa<llvm::AllocaInst>(o); });
}

} // namespace

void end_overwritten_slots(llvm::Module& module, const slots& fields) {
    if (fields.accesses.empty()) return;
    llvm::DenseSet<const llvm::AllocaInst*> annotated;
    llvm::SmallVector<llvm::MemIntrinsic*, 8> found;
    for (llvm::Function& f : module) {
        annotated.clear();
        for (llvm::Instruction& i : llvm::instructions(f))
            if (const llvm::AllocaInst* variable = annotated_variable(i))
                annotated.insert(variable);
        for (llvm::Instruction& i : llvm::instructions(f))
            if (auto* clearing = llvm::dyn_cast<llvm::MemIntrinsic>(&i);
                clearing != nullptr && may_have_slots(*clearing, fields, annotated))
                found.push_back(clearing);
    }
    if (found.empty()) return;
    llvm::LLVMContext& context = module.getContext();
    llvm::FunctionCallee forget = module.getOrInsertFunction(
        runtime_name(module, "forget"),
        llvm::FunctionType::get(
            llvm::Type::getVoidTy(context),
            {llvm::PointerType::getUnqual(context), llvm::Type::getInt64Ty(context)}, false));
    llvm::cast<llvm::Function>(forget.getCallee())->setDoesNotThrow();
    for (llvm::MemIntrinsic* clearing : found)
        llvm::IRBuilder<>(clearing).CreateCall(forget,
                                               {clearing->getRawDest(), clearing->getLength()});
}

} // namespace obase::passes
