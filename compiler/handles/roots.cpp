// SPDX-License-Identifier: MIT
//
// Which addresses need a translation, and from which value it is made. Arithmetic stays within an object, so one translation
// of the value it begins with, the *root*, serves all addresses that are computed from it. Memory of frames, variables and
// null needs none.
//
// Through phis and selects: where all ways lead back to one root that dominates them all, an address is as far from its
// translation as the root is from its own. A root that dominates every phi of the web is not executed again without them:
// no phi holds an address made from an earlier value of the root.
#include "handles.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

namespace obase::handles {

namespace {

constexpr unsigned largest_web = 64;

bool passes_through(const llvm::CallBase& call) {
    switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::launder_invariant_group:
    case llvm::Intrinsic::strip_invariant_group:
    case llvm::Intrinsic::ssa_copy:
        return true;
    default:
        return false;
    }
}

// What is no object of the heap, whatever the program does.
bool is_elsewhere(const llvm::Value* root) {
    if (llvm::isa<llvm::AllocaInst, llvm::GlobalValue>(root)) return true;
    if (const auto* constant = llvm::dyn_cast<llvm::Constant>(root))
        return !llvm::isa<llvm::ConstantExpr>(constant) ||
               llvm::isa<llvm::GlobalValue>(constant->stripInBoundsOffsets());
    if (const auto* argument = llvm::dyn_cast<llvm::Argument>(root))
        return argument->hasByValAttr();
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(root)) {
        switch (call->getIntrinsicID()) {
        case llvm::Intrinsic::threadlocal_address:
        case llvm::Intrinsic::stacksave:
        case llvm::Intrinsic::frameaddress:
        case llvm::Intrinsic::returnaddress:
            return true;
        default:
            break;
        }
        if (const llvm::Function* callee = call->getCalledFunction()) {
            llvm::StringRef name = callee->getName();
            name.consume_front("__obase_h.");
            const known_function* known = look_up(name, *call);
            return known != nullptr && known->no_heap;
        }
    }
    // The C library's tables of characters.
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(root))
        if (const auto* from = llvm::dyn_cast<llvm::CallBase>(load->getPointerOperand()))
            if (const llvm::Function* callee = from->getCalledFunction()) {
                llvm::StringRef name = callee->getName();
                name.consume_front("__obase_h.");
                return name.starts_with("__ctype_") && name.ends_with("_loc");
            }
    return false;
}

} // namespace

llvm::Value* root_finder::strip(llvm::Value* address) const {
    for (;;) {
        llvm::Value* next = nullptr;
        if (auto* gep = llvm::dyn_cast<llvm::GEPOperator>(address)) {
            next = gep->getPointerOperand();
            // A number in disguise.
            if (llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(next) &&
                llvm::isa<llvm::Instruction>(gep))
                return address;
            if (!next->getType()->isPointerTy()) return address;
            // Of a fixed address: no instruction, whose operand could be moved.
            if (llvm::isa<llvm::ConstantExpr>(gep) &&
                !llvm::isa<llvm::GlobalValue>(llvm::getUnderlyingObject(gep)))
                return address;
        } else if (auto* cast = llvm::dyn_cast<llvm::BitCastOperator>(address)) {
            next = cast->getOperand(0);
        } else if (auto* frozen = llvm::dyn_cast<llvm::FreezeInst>(address)) {
            next = frozen->getOperand(0);
        } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(address)) {
            if (passes_through(*call)) next = call->getArgOperand(0);
        }
        if (next == nullptr) return address;
        address = next;
    }
}

resolved root_finder::operator()(llvm::Value* address) {
    llvm::Value* root = strip(address);
    if (is_elsewhere(root)) return {};
    if (!llvm::isa<llvm::PHINode, llvm::SelectInst>(root)) return {root, false};
    const auto found = webs_.find(root);
    if (found != webs_.end()) return found->second;
    const resolved of = of_web(llvm::cast<llvm::Instruction>(root));
    webs_[root] = of;
    return of;
}

resolved root_finder::of_web(llvm::Instruction* first) {
    llvm::SmallVector<llvm::Instruction*, 16> members{first};
    llvm::SmallPtrSet<llvm::Value*, 16> seen{first};
    llvm::Value* only = nullptr;
    bool elsewhere = false;
    for (unsigned i = 0; i < members.size(); ++i) {
        llvm::Instruction* member = members[i];
        for (unsigned j = llvm::isa<llvm::SelectInst>(member) ? 1 : 0; j < member->getNumOperands();
             ++j) {
            llvm::Value* from = strip(member->getOperand(j));
            if (llvm::isa<llvm::PHINode, llvm::SelectInst>(from)) {
                if (members.size() == largest_web) return {first, false};
                if (seen.insert(from).second)
                    members.push_back(llvm::cast<llvm::Instruction>(from));
            } else if (llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(from)) {
                continue; // not accessed
            } else if (is_elsewhere(from)) {
                elsewhere = true;
            } else if (only != nullptr && only != from) {
                return {first, false};
            } else {
                only = from;
            }
        }
    }
    if (only == nullptr) return {};
    if (elsewhere) return {first, false};
    if (const auto* definition = llvm::dyn_cast<llvm::Instruction>(only))
        for (const llvm::Instruction* member : members)
            if (!dominators_.dominates(definition, member)) return {first, false};
    return {only, true};
}

namespace {

// Intrinsics that do not reach the memory that they are told of.
bool reaches_nothing(const llvm::CallBase& call) {
    if (llvm::isa<llvm::DbgInfoIntrinsic>(call)) return true;
    switch (call.getIntrinsicID()) {
    case llvm::Intrinsic::lifetime_start:
    case llvm::Intrinsic::lifetime_end:
    case llvm::Intrinsic::invariant_start:
    case llvm::Intrinsic::invariant_end:
    case llvm::Intrinsic::assume:
    case llvm::Intrinsic::prefetch:
    case llvm::Intrinsic::launder_invariant_group:
    case llvm::Intrinsic::strip_invariant_group:
    case llvm::Intrinsic::ssa_copy:
    case llvm::Intrinsic::ptrmask:
    case llvm::Intrinsic::ptr_annotation:
    case llvm::Intrinsic::var_annotation:
    case llvm::Intrinsic::threadlocal_address:
    case llvm::Intrinsic::objectsize:
    case llvm::Intrinsic::is_constant:
    case llvm::Intrinsic::stackrestore:
    case llvm::Intrinsic::eh_typeid_for:
    case llvm::Intrinsic::type_test:
    case llvm::Intrinsic::public_type_test:
    case llvm::Intrinsic::donothing:
    case llvm::Intrinsic::experimental_noalias_scope_decl:
        return true;
    default:
        return false;
    }
}

class collector {
  public:
    collector(module_state& state, llvm::SmallVectorImpl<llvm::Use*>& found)
        : state_(state), found_(found) {}

    void of(llvm::Instruction& i) {
        if (i.hasMetadata(reads_code)) return;
        if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
            add(load->getOperandUse(load->getPointerOperandIndex()));
        else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
            add(store->getOperandUse(store->getPointerOperandIndex()));
        else if (llvm::isa<llvm::AtomicRMWInst, llvm::AtomicCmpXchgInst, llvm::VAArgInst>(i))
            add(i.getOperandUse(0));
        else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i))
            of_call(*call);
    }

  private:
    void add(llvm::Use& use) {
        llvm::Type* type = use->getType();
        if (type->isPointerTy() && type->getPointerAddressSpace() == 0) found_.push_back(&use);
    }

    // Each lane is translated, active or not: any bits may be.
    void add_lanes(llvm::Use& use) {
        auto* type = llvm::cast<llvm::FixedVectorType>(use->getType());
        if (type->getElementType()->getPointerAddressSpace() != 0) return;
        llvm::IRBuilder<> build(llvm::cast<llvm::Instruction>(use.getUser()));
        llvm::Value* lanes = use.get();
        llvm::Value* made = llvm::PoisonValue::get(type);
        for (unsigned i = 0; i < type->getNumElements(); ++i) {
            // By hand: a builder would fold what is constant.
            auto* lane = llvm::ExtractElementInst::Create(lanes, build.getInt32(i), "",
                                                          build.GetInsertPoint());
            auto* next = llvm::InsertElementInst::Create(made, lane, build.getInt32(i), "",
                                                         build.GetInsertPoint());
            add(next->getOperandUse(1));
            made = next;
        }
        use.set(made);
    }

    void of_call(llvm::CallBase& call) {
        if (call.isInlineAsm()) return of_assembly(call);
        if (llvm::isa<llvm::IntrinsicInst>(call)) {
            if (reaches_nothing(call)) return;
            for (llvm::Use& argument : call.args())
                if (argument->getType()->isPointerTy())
                    add(argument);
                else if (llvm::isa<llvm::FixedVectorType>(argument->getType()) &&
                         argument->getType()->getScalarType()->isPointerTy())
                    add_lanes(argument);
            return;
        }
        for (llvm::Use& argument : call.args())
            if (call.isByValArgument(call.getArgOperandNo(&argument))) add(argument);
        const known_function* known = state_.known.lookup(&call);
        if (known == nullptr || known->blocks || known->wrapped || known->arguments.empty()) return;
        for (unsigned i = 0; i < call.arg_size(); ++i) {
            const char letter =
                known->arguments[std::min<std::size_t>(i, known->arguments.size() - 1)];
            if (letter == 't' || letter == 'e') add(call.getArgOperandUse(i));
        }
    }

    // Without an operand in memory and a clobber of memory, assembly that names no memory reaches none: it gets homes.
    static bool reaches_memory(const llvm::InlineAsm& assembly) {
        const llvm::StringRef text = llvm::StringRef(assembly.getAsmString()).trim();
        if (text.empty()) return false;
        if (text.find_first_of("([") != llvm::StringRef::npos || text.contains(":a}")) return true;
        return llvm::any_of(assembly.ParseConstraints(), [](const auto& one) {
            return one.isIndirect ||
                   (one.Type == llvm::InlineAsm::isClobber && one.Codes.front() == "{memory}");
        });
    }

    // What may not be is refused before (refusals.cpp).
    void of_assembly(llvm::CallBase& call) {
        const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
        const bool empty = !reaches_memory(*assembly);
        unsigned at = 0;
        for (const llvm::InlineAsm::ConstraintInfo& one : assembly->ParseConstraints()) {
            if (!one.hasArg()) continue;
            llvm::Use& argument = call.getArgOperandUse(at++);
            if (argument->getType()->isPointerTy() && (one.isIndirect || !empty)) add(argument);
        }
    }

    module_state& state_;
    llvm::SmallVectorImpl<llvm::Use*>& found_;
};

} // namespace

llvm::SmallVector<llvm::Use*, 64> accesses_of(module_state& state, llvm::Function& f) {
    llvm::SmallVector<llvm::Use*, 64> found;
    llvm::SmallVector<llvm::Instruction*, 128> all;
    for (llvm::BasicBlock& block : f)
        for (llvm::Instruction& i : block) all.push_back(&i);
    collector collect(state, found);
    for (llvm::Instruction* i : all) collect.of(*i);
    return found;
}

} // namespace obase::handles
