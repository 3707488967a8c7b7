// SPDX-License-Identifier: MIT
//
// Addresses in front of their object: arrays that begin at 1, a buffer's beginning less the length of what is left out. Such an
// address tells nothing, it may be another object's: its object has to be known beside it. Where it is used by the function that
// computes it the object is its root (roots.cpp). Two ways lead away from there:
//
//   into another function     a local one all of whose calls are known gets the object as one more argument, and computes the
//                             address from that
//   through a phi or select   beside it one of the objects is made, and what is accessed is computed from that
#include "handles.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/Transforms/Utils/Local.h>

namespace obase::handles {

namespace {

// Metadata of an argument's address as computed from its object.
constexpr const char* from_object = "obase.from_object";

bool is_address(const llvm::Value* value) {
    return value->getType()->isPointerTy() && value->getType()->getPointerAddressSpace() == 0;
}

bool joins(const llvm::Value* value) {
    return llvm::isa<llvm::PHINode, llvm::SelectInst>(value) && is_address(value);
}

llvm::Value* beginning_of(llvm::Value* value) {
    while (auto* gep = llvm::dyn_cast<llvm::GEPOperator>(value)) {
        llvm::Value* next = gep->getPointerOperand();
        if (llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(next))
            break; // a number in disguise
        value = next;
    }
    return value;
}

bool is_from_object(const llvm::Value* value) {
    while (const auto* gep = llvm::dyn_cast<llvm::GEPOperator>(value)) {
        const auto* made = llvm::dyn_cast<llvm::Instruction>(gep);
        if (made != nullptr && made->hasMetadata(from_object)) return true;
        value = gep->getPointerOperand();
    }
    return false;
}

// With a part that varies it is more likely the last element than the one in front of the first.
bool lies_in_front(llvm::Value* value, const llvm::DataLayout& layout) {
    if (is_from_object(value)) return true;
    llvm::APInt offset(64, 0);
    const llvm::Value* object =
        value->stripAndAccumulateConstantOffsets(layout, offset, /*AllowNonInbounds=*/true);
    return offset.isNegative() &&
           !llvm::isa<llvm::GEPOperator, llvm::Constant, llvm::AllocaInst>(object);
}

// Phis and selects of addresses some of which lie in front, and the phis and selects of their objects.
class joined_objects {
  public:
    explicit joined_objects(const llvm::DataLayout& layout) : layout_(layout) {}

    bool come_from_in_front(llvm::Value* first) const {
        llvm::SmallSetVector<llvm::Value*, 16> members;
        members.insert(first);
        bool any = false;
        for (unsigned i = 0; i < members.size(); ++i)
            for (llvm::Value* from : llvm::cast<llvm::Instruction>(members[i])->operands()) {
                if (!is_address(from)) continue;
                llvm::Value* object = beginning_of(from);
                if (joins(object))
                    members.insert(object);
                else
                    any |= lies_in_front(from, layout_);
            }
        return any;
    }
    llvm::Value* of(llvm::Value* value) {
        value = beginning_of(value);
        if (!joins(value)) return value;
        if (const auto made = made_.find(value); made != made_.end()) return made->second;
        if (auto* phi = llvm::dyn_cast<llvm::PHINode>(value)) {
            auto* made = llvm::PHINode::Create(phi->getType(), phi->getNumIncomingValues(), "",
                                               phi->getIterator());
            made_[value] = made;
            for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i)
                made->addIncoming(of(phi->getIncomingValue(i)), phi->getIncomingBlock(i));
            return made;
        }
        auto* select = llvm::cast<llvm::SelectInst>(value);
        llvm::Value* one = of(select->getTrueValue());
        llvm::Value* other = of(select->getFalseValue());
        return made_[value] = llvm::SelectInst::Create(select->getCondition(), one, other, "",
                                                       select->getIterator());
    }

  private:
    const llvm::DataLayout& layout_;
    llvm::DenseMap<llvm::Value*, llvm::Value*> made_;
};

llvm::Instruction* computed_from(llvm::Value* object, llvm::Value* number,
                                 llvm::IRBuilder<>& build) {
    return build.Insert(llvm::GetElementPtrInst::Create(
        build.getInt8Ty(), object,
        build.CreateSub(number, build.CreatePtrToInt(object, number->getType()))));
}

// A number that is computed from addresses.
bool is_of_addresses(const llvm::Value* number, unsigned depth = 0) {
    if (llvm::isa<llvm::PtrToIntOperator>(number)) return true;
    const auto* made = llvm::dyn_cast<llvm::Instruction>(number);
    return made != nullptr && depth < 8 && llvm::isa<llvm::BinaryOperator, llvm::CastInst>(made) &&
           llvm::any_of(
               made->operands(),
               [&](const llvm::Use& operand) { return is_of_addresses(operand, depth + 1); });
}

// Made by a subtraction: less than nothing, as likely as not. What is computed from addresses leads from one object to
// another, if it is not of one.
bool may_be_negative(const llvm::Value* index, unsigned depth = 0) {
    if (depth == 0 && is_of_addresses(index)) return false;
    const auto* made = llvm::dyn_cast<llvm::Instruction>(index);
    if (made == nullptr || depth == 8) return false;
    switch (made->getOpcode()) {
    case llvm::Instruction::SExt:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Shl:
        return may_be_negative(made->getOperand(0), depth + 1);
    case llvm::Instruction::Sub:
        return !llvm::isa<llvm::Constant>(made->getOperand(1));
    case llvm::Instruction::Xor: {
        const auto* mask = llvm::dyn_cast<llvm::ConstantInt>(made->getOperand(1));
        return mask != nullptr && mask->isMinusOne();
    }
    case llvm::Instruction::Mul: {
        const auto* factor = llvm::dyn_cast<llvm::ConstantInt>(made->getOperand(1));
        return (factor != nullptr && factor->isNegative()) ||
               may_be_negative(made->getOperand(0), depth + 1);
    }
    case llvm::Instruction::Add:
        return may_be_negative(made->getOperand(0), depth + 1) ||
               may_be_negative(made->getOperand(1), depth + 1);
    default:
        return false;
    }
}

// Gives local functions the objects of their arguments.
class giver {
  public:
    explicit giver(llvm::Module& module)
        : module_(module), layout_(module.getDataLayout()), joined_(layout_) {}

    void run() {
        // Elsewhere arithmetic may have no beginning.
        for (llvm::Function& f : module_)
            if (!f.isDeclaration()) llvm::removeUnreachableBlocks(f);
        for (llvm::Function& f : module_)
            if (auto calls = all_calls_of(f); !calls.empty()) calls_[&f] = std::move(calls);
        for (const auto& [f, calls] : calls_)
            for (llvm::Argument& argument : f->args())
                if (llvm::any_of(calls, [&](const llvm::CallBase* call) {
                        return may_lie_in_front(call->getArgOperand(argument.getArgNo()));
                    }))
                    wanted(argument);
        for (unsigned i = 0; i < wanted_.size(); ++i) follow(*wanted_[i]);
        for (const auto& [f, calls] : calls_)
            if (llvm::any_of(f->args(),
                             [&](llvm::Argument& one) { return wanted_.contains(&one); }))
                convert(*f);
        for (const auto& [f, of] : converted_) {
            for (llvm::CallBase* call : calls_[f]) convert(*call, of);
            f->replaceAllUsesWith(of.made); // in metadata
            f->eraseFromParent();
        }
    }

  private:
    struct conversion {
        llvm::Function* made;
        llvm::SmallVector<unsigned, 4> arguments; // whose objects follow the others
    };

    // None if others may call it, or not as it is defined.
    static llvm::SmallVector<llvm::CallBase*, 8> all_calls_of(llvm::Function& f) {
        if (!f.hasLocalLinkage() || f.isDeclaration() || f.isVarArg() || f.hasOptNone() ||
            f.hasFnAttribute(llvm::Attribute::Naked) || !takes_more_arguments(f))
            return {};
        llvm::SmallVector<llvm::CallBase*, 8> calls;
        for (llvm::Use& use : f.uses()) {
            auto* call = llvm::dyn_cast<llvm::CallBase>(use.getUser());
            if (call == nullptr || !call->isCallee(&use) || call->isMustTailCall() ||
                call->getFunctionType() != f.getFunctionType() ||
                !llvm::isa<llvm::CallInst, llvm::InvokeInst>(call))
                return {};
            calls.push_back(call);
        }
        return calls;
    }
    static bool takes_more_arguments(const llvm::Function& f) {
        const llvm::CallingConv::ID convention = f.getCallingConv();
        if (convention != llvm::CallingConv::C && convention != llvm::CallingConv::Fast &&
            convention != llvm::CallingConv::Cold)
            return false;
        for (const auto kind :
             {llvm::Attribute::InAlloca, llvm::Attribute::Preallocated, llvm::Attribute::SwiftSelf,
              llvm::Attribute::SwiftError, llvm::Attribute::SwiftAsync})
            if (f.getAttributes().hasAttrSomewhere(kind)) return false;
        return llvm::none_of(f, [](const llvm::BasicBlock& block) {
            return block.getTerminatingMustTailCall() != nullptr;
        });
    }

    bool may_lie_in_front(llvm::Value* value) const {
        if (!is_address(value)) return false;
        llvm::Value* object = beginning_of(value);
        if (llvm::isa<llvm::Constant, llvm::AllocaInst>(object)) return false; // never moves
        if (lies_in_front(value, layout_)) return true;
        for (const auto* gep = llvm::dyn_cast<llvm::GEPOperator>(value); gep != nullptr;
             gep = llvm::dyn_cast<llvm::GEPOperator>(gep->getPointerOperand()))
            if (llvm::any_of(gep->indices(),
                             [](const llvm::Use& use) { return may_be_negative(use); }))
                return true;
        return joins(object) && joined_.come_from_in_front(object);
    }

    void wanted(llvm::Argument& argument) {
        if (is_address(&argument) && !argument.use_empty() &&
            !argument.hasPassPointeeByValueCopyAttr() && !argument.hasStructRetAttr() &&
            !argument.hasNestAttr())
            wanted_.insert(&argument);
    }

    // What comes from such an argument lies in front as it does.
    void follow(llvm::Argument& argument) {
        llvm::SmallSetVector<llvm::Value*, 16> same;
        same.insert(&argument);
        for (unsigned i = 0; i < same.size(); ++i)
            for (llvm::Use& use : same[i]->uses()) {
                llvm::User* user = use.getUser();
                if (llvm::isa<llvm::GetElementPtrInst>(user) || joins(user)) same.insert(user);
                auto* call = llvm::dyn_cast<llvm::CallBase>(user);
                if (call == nullptr || !call->isArgOperand(&use)) continue;
                llvm::Function* callee = call->getCalledFunction();
                if (callee != nullptr && calls_.contains(callee))
                    wanted(*callee->getArg(call->getArgOperandNo(&use)));
            }
    }

    // Moves the function's code into one with more arguments.
    void convert(llvm::Function& f) {
        conversion& of = converted_[&f];
        llvm::SmallVector<llvm::Type*, 8> types(f.getFunctionType()->params());
        for (llvm::Argument& argument : f.args())
            if (wanted_.contains(&argument)) {
                of.arguments.push_back(argument.getArgNo());
                types.push_back(argument.getType());
            }
        of.made = llvm::Function::Create(llvm::FunctionType::get(f.getReturnType(), types, false),
                                         f.getLinkage(), f.getAddressSpace());
        of.made->copyAttributesFrom(&f);
        of.made->setComdat(f.getComdat());
        of.made->copyMetadata(&f, 0);
        f.clearMetadata();
        module_.getFunctionList().insert(f.getIterator(), of.made);
        of.made->takeName(&f);
        of.made->setIsNewDbgInfoFormat(f.IsNewDbgInfoFormat);
        of.made->splice(of.made->begin(), &f);
        for (llvm::Argument& argument : f.args()) {
            llvm::Argument* address = of.made->getArg(argument.getArgNo());
            argument.replaceAllUsesWith(address);
            address->takeName(&argument);
        }
        llvm::IRBuilder<> build(&*of.made->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        auto next = unsigned(f.arg_size());
        for (const unsigned at : of.arguments) {
            llvm::Argument* address = of.made->getArg(at);
            llvm::Value* number = build.CreatePtrToInt(address, build.getInt64Ty());
            llvm::Instruction* from = computed_from(of.made->getArg(next++), number, build);
            from->setMetadata(from_object, llvm::MDNode::get(f.getContext(), {}));
            address->replaceUsesWithIf(from,
                                       [&](llvm::Use& use) { return use.getUser() != number; });
        }
    }

    void convert(llvm::CallBase& call, const conversion& to) {
        llvm::SmallVector<llvm::Value*, 8> arguments(call.args());
        for (const unsigned at : to.arguments) arguments.push_back(object_of(arguments[at]));
        llvm::SmallVector<llvm::OperandBundleDef, 1> bundles;
        call.getOperandBundlesAsDefs(bundles);
        llvm::CallBase* made = nullptr;
        if (auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&call)) {
            made =
                llvm::InvokeInst::Create(to.made, invoke->getNormalDest(), invoke->getUnwindDest(),
                                         arguments, bundles, "", call.getIterator());
        } else {
            auto* plain =
                llvm::CallInst::Create(to.made, arguments, bundles, "", call.getIterator());
            plain->setTailCallKind(llvm::cast<llvm::CallInst>(call).getTailCallKind());
            made = plain;
        }
        made->setCallingConv(call.getCallingConv());
        made->setAttributes(call.getAttributes());
        made->copyMetadata(call);
        made->takeName(&call);
        call.replaceAllUsesWith(made);
        call.eraseFromParent();
    }

    llvm::Value* object_of(llvm::Value* address) {
        llvm::Value* object = beginning_of(address);
        return joins(object) && joined_.come_from_in_front(object) ? joined_.of(object) : object;
    }

    llvm::Module& module_;
    const llvm::DataLayout& layout_;
    joined_objects joined_;
    llvm::MapVector<llvm::Function*, llvm::SmallVector<llvm::CallBase*, 8>> calls_;
    llvm::SetVector<llvm::Argument*> wanted_; // whose functions get their objects
    llvm::MapVector<llvm::Function*, conversion> converted_;
};

// Makes what is accessed through phis and selects by their objects.
class anchoring {
  public:
    explicit anchoring(llvm::Function& f) : f_(f), layout_(f.getDataLayout()), joined_(layout_) {}

    void run(module_state& state) {
        if (!any_in_front()) return;
        const llvm::DominatorTree dominators(f_);
        root_finder find(dominators);
        llvm::SmallVector<std::pair<llvm::Use*, llvm::Value*>, 8> found;
        for (llvm::Use* use : accesses_of(state, f_)) {
            const resolved of = find(use->get());
            if (of.root != nullptr && !of.by_difference && joins(of.root) &&
                joined_.come_from_in_front(of.root))
                found.emplace_back(use, of.root);
        }
        for (const auto& [use, root] : found) {
            llvm::IRBuilder<> build(llvm::cast<llvm::Instruction>(use->getUser()));
            llvm::Value* object = joined_.of(root);
            use->set(
                computed_from(object, build.CreatePtrToInt(use->get(), build.getInt64Ty()), build));
        }
    }

  private:
    bool any_in_front() const {
        for (const llvm::BasicBlock& block : f_)
            for (const llvm::Instruction& i : block)
                if (joins(&i))
                    for (llvm::Value* from : i.operands())
                        if (is_address(from) && !joins(beginning_of(from)) &&
                            lies_in_front(from, layout_))
                            return true;
        return false;
    }

    llvm::Function& f_;
    const llvm::DataLayout& layout_;
    joined_objects joined_;
};

} // namespace

void give_objects(llvm::Module& module) { giver(module).run(); }

void anchor(module_state& state, llvm::Function& f) { anchoring(f).run(state); }

} // namespace obase::handles
