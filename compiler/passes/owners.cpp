// SPDX-License-Identifier: MIT
//
// Objects that an operation certainly leaves in two marked fields: what it has allocated is stored into
// one field and then into another, and nothing is stored into either of them afterwards. Each of the two
// would free the object, and one of them keeps the old address when the object moves.
//
// Only what is certain is an error. What an operation has found in a field and stores into another one
// may leave the first by what other functions do, so that is found by running the program only.
#include "instrumentation.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <optional>
#include <utility>

namespace obase::passes {

namespace {

// A field by its struct and its place there: of all objects of the struct.
struct field {
    const llvm::Type* record;
    std::int64_t offset;
    bool operator==(const field&) const = default;
};

class owner_checker {
  public:
    owner_checker(llvm::Module& module, const slots& fields, const allocations& allocated,
                  problems& errors)
        : layout_(module.getDataLayout()), fields_(fields), allocated_(allocated), errors_(errors) {
    }

    void check(llvm::Function& f) {
        llvm::MapVector<llvm::Value*, llvm::SmallVector<llvm::StoreInst*, 4>> stores;
        for (llvm::Instruction& i : llvm::instructions(f))
            if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i);
                store != nullptr && fields_.has(store->getPointerOperand()))
                if (auto* made = llvm::dyn_cast<llvm::CallBase>(store->getValueOperand());
                    made != nullptr && allocated_.found.contains(made) && !reallocates(*made))
                    stores[made].push_back(store);
        for (const auto& [made, into] : stores)
            for (llvm::StoreInst* first : into)
                for (llvm::StoreInst* second : into)
                    if (first != second) check(*llvm::cast<llvm::CallBase>(made), *first, *second);
    }

  private:
    void check(llvm::CallBase& made, llvm::StoreInst& first, llvm::StoreInst& second) {
        const std::optional<field> one = field_of(first);
        const std::optional<field> other = field_of(second);
        if (!one || !other || *one == *other) return;
        if (!follows(first, second, made) || changes_after(first, *one, *other, made)) return;
        errors_.refuse(second, "a new object is stored into a second marked field, and stays in "
                               "the first: an object has one owner. "
                               "For a tail, a parent or a previous element keep a key or an index, "
                               "or search for it in each operation");
    }

    // Variables in frames end with the operation.
    std::optional<field> field_of(const llvm::StoreInst& store) const {
        const llvm::Value* address = store.getPointerOperand();
        while (is_field_annotation(*address) || is_elements_annotation(*address))
            address = llvm::cast<llvm::CallBase>(address)->getArgOperand(0);
        const auto* gep = llvm::dyn_cast<llvm::GEPOperator>(address);
        if (gep == nullptr || !gep->getSourceElementType()->isStructTy()) return std::nullopt;
        if (llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address, 0))) return std::nullopt;
        llvm::APInt offset(64, 0);
        if (!gep->accumulateConstantOffset(layout_, offset)) return std::nullopt;
        return field{gep->getSourceElementType(), offset.getSExtValue()};
    }

    // Calls use(instruction) for what may run after `from`, without passing where the object is made,
    // until it returns true.
    static bool any_after(const llvm::Instruction& from, const llvm::Instruction& made,
                          llvm::function_ref<bool(const llvm::Instruction&)> use) {
        llvm::SmallVector<const llvm::BasicBlock*, 16> ahead;
        llvm::DenseSet<const llvm::BasicBlock*> been;
        const auto walk = [&](const llvm::Instruction* i) {
            for (; i != nullptr; i = i->getNextNode()) {
                if (i == &made) return false;
                if (use(*i)) return true;
                if (i->isTerminator())
                    for (const llvm::BasicBlock* next : llvm::successors(i->getParent()))
                        if (been.insert(next).second) ahead.push_back(next);
            }
            return false;
        };
        if (walk(from.getNextNode())) return true;
        while (!ahead.empty())
            if (walk(&ahead.pop_back_val()->front())) return true;
        return false;
    }
    static bool follows(const llvm::Instruction& first, const llvm::Instruction& second,
                        const llvm::Instruction& made) {
        return any_after(first, made, [&](const llvm::Instruction& i) { return &i == &second; });
    }
    // True if something may take the object out of one of the fields: a store there, or where it is not
    // known what is stored into, or a call of a function that may.
    bool changes_after(const llvm::StoreInst& first, const field& one, const field& other,
                       const llvm::Instruction& made) const {
        return any_after(first, made, [&](const llvm::Instruction& i) {
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) return may_change(*call);
            if (!fields_.is_access(&i) || llvm::isa<llvm::LoadInst>(i)) return false;
            const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i);
            if (store == nullptr) return true;
            if (store->getValueOperand() == &made) return false;
            const std::optional<field> into = field_of(*store);
            return !into || *into == one || *into == other;
        });
    }
    static bool may_change(const llvm::CallBase& call) {
        if (llvm::isa<llvm::IntrinsicInst>(call) || is_allocation(call)) return false;
        const llvm::Function* callee = callee_of(call);
        // What is compiled elsewhere, and is not told of operations, has none of the fields.
        return callee == nullptr || !callee->isDeclaration() || is_free(call) ||
               !(callee->getName().starts_with("pthread_") || callee->getName() == "printf" ||
                 callee->getName() == "snprintf" || callee->getName() == "strlen" ||
                 callee->getName() == "strcpy");
    }

    const llvm::DataLayout& layout_;
    const slots& fields_;
    const allocations& allocated_;
    problems& errors_;
};

} // namespace

void check_owners(llvm::Module& module, const slots& fields, const allocations& allocated,
                  const scope_plan& plan, problems& errors) {
    owner_checker checker(module, fields, allocated, errors);
    for (llvm::Function* f : plan.operations) checker.check(*f);
}

} // namespace obase::passes
