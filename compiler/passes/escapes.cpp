// SPDX-License-Identifier: MIT
//
// Whether an address from a marked field can be used after its operation has ended.
//
// Each value gets flags, which only grow, and a list of values whose flags have grown is worked off.
// They flow forwards: from loads of slots and from allocations that end in slots, through casts, phis,
// arguments and results of functions compiled here, variables in frames. Where one reaches what
// outlives the operation, that is an error with its place and what to do.
//
// One summary per function, for all its callers: what is handed to it by one comes out at all. So a
// helper that is used both for borrowed addresses and for others may be refused without need; two
// helpers then help. Not followed: what code that is compiled elsewhere does with an address.
#include "instrumentation.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace obase::passes {

namespace {

enum : unsigned {
    borrowed = 1, // an address from a marked field, or made of one
    exact = 2,    // of an object's first byte, for certain
    inside = 4,   // of another byte of it, for certain
    holder = 8,   // the address of a variable that a borrowed address was stored into
};

constexpr llvm::StringLiteral must_not_outlive = "; the object may move when the operation ends. ";

class checker {
  public:
    checker(const slots& fields, const llvm::SetVector<llvm::CallBase*>& allocations,
            const scope_plan& plan, problems& errors)
        : fields_(fields), allocations_(allocations), plan_(plan), errors_(errors) {}

    void check() {
        for (llvm::Instruction* access : fields_.accesses)
            if (!llvm::isa<llvm::StoreInst>(access)) raise(*access, borrowed | exact);
        for (llvm::CallBase* call : allocations_) raise(*call, borrowed | exact);
        while (!work_.empty()) {
            llvm::Value* v = work_.pop_back_val();
            const unsigned flags = flags_.lookup(v);
            for (const llvm::Use& u : v->uses())
                if (auto* user = llvm::dyn_cast<llvm::Instruction>(u.getUser()))
                    reaches(*v, flags, *user, u);
        }
    }

  private:
    void raise(llvm::Value& v, unsigned flags) {
        unsigned& known = flags_[&v];
        if ((known | flags) == known) return;
        known |= flags;
        work_.push_back(&v);
    }

    void reaches(llvm::Value& v, unsigned flags, llvm::Instruction& user, const llvm::Use& u) {
        switch (user.getOpcode()) {
        case llvm::Instruction::Load:
            // Of a field of the object: its own. Of a variable: perhaps what was stored into it, and
            // perhaps the address of such a variable.
            // Numbers beside it are numbers.
            if ((flags & holder) != 0 && !fields_.is_access(&user) &&
                !user.getType()->isIntOrIntVectorTy() && !user.getType()->isFPOrFPVectorTy() &&
                may_hold(v, user))
                raise(user, borrowed | holder);
            return;
        case llvm::Instruction::Store:
            if (u.getOperandNo() != llvm::StoreInst::getPointerOperandIndex())
                stored(flags, llvm::cast<llvm::StoreInst>(user).getPointerOperand(), user);
            return;
        case llvm::Instruction::AtomicRMW:
            if (u.getOperandNo() != llvm::AtomicRMWInst::getPointerOperandIndex())
                stored(flags, llvm::cast<llvm::AtomicRMWInst>(user).getPointerOperand(), user);
            return;
        case llvm::Instruction::AtomicCmpXchg:
            if (u.getOperandNo() == 2)
                stored(flags, llvm::cast<llvm::AtomicCmpXchgInst>(user).getPointerOperand(), user);
            return;
        case llvm::Instruction::GetElementPtr:
            indexed(v, flags, llvm::cast<llvm::GetElementPtrInst>(user), u);
            return;
        case llvm::Instruction::PHI:
        case llvm::Instruction::Select:
        case llvm::Instruction::Freeze:
        case llvm::Instruction::BitCast:
        case llvm::Instruction::PtrToInt:
        case llvm::Instruction::IntToPtr:
        case llvm::Instruction::InsertValue:
            raise(user, flags);
            return;
        case llvm::Instruction::ExtractValue:
            // A compare-exchange has the address as a number; elsewhere what is no address is a
            // number beside one.
            if (user.getType()->isPointerTy() || user.getType()->isAggregateType() ||
                (llvm::isa<llvm::AtomicCmpXchgInst>(v) && user.getType()->isIntegerTy(64)))
                raise(user, flags);
            return;
        case llvm::Instruction::ICmp:
            return;
        case llvm::Instruction::Ret:
            returned(flags, user);
            return;
        case llvm::Instruction::Call:
        case llvm::Instruction::Invoke:
        case llvm::Instruction::CallBr:
            passed(flags, llvm::cast<llvm::CallBase>(user), u);
            return;
        default:
            if ((flags & borrowed) == 0) return;
            if (is_difference(user) || is_alignment_check(user)) return;
            if (user.isBinaryOp() || user.isCast() || llvm::isa<llvm::SwitchInst>(user)) {
                // What was loaded from a variable as a number may be any number.
                if ((flags & holder) == 0)
                    errors_.refuse(user, "the address of a managed object is computed with as a "
                                         "number, which changes when the object moves. Take a key "
                                         "or a counter of the object for hashes and orders");
                return;
            }
            if ((flags & holder) == 0)
                errors_.refuse(user, "this use of the address of a managed object is not "
                                     "understood. Use it by loads, stores and calls");
        }
    }

    // How far two addresses are apart: the same wherever the object is.
    static bool is_difference(const llvm::Instruction& i) {
        return i.getOpcode() == llvm::Instruction::Sub &&
               llvm::isa<llvm::PtrToIntInst>(i.getOperand(0)) &&
               llvm::isa<llvm::PtrToIntInst>(i.getOperand(1));
    }
    // An object keeps its alignment. The undefined-behaviour sanitizer asks at every access.
    static bool is_alignment_check(const llvm::Instruction& i) {
        const auto* mask = i.getOpcode() == llvm::Instruction::And
                               ? llvm::dyn_cast<llvm::ConstantInt>(i.getOperand(1))
                               : nullptr;
        return mask != nullptr && mask->getValue().ult(largest_alignment) &&
               llvm::all_of(i.users(),
                            [](const llvm::User* user) { return llvm::isa<llvm::ICmpInst>(user); });
    }
    static constexpr std::uint64_t largest_alignment = 4096; // of the heaps

    // The value is stored to the place.
    void stored(unsigned flags, llvm::Value* place, llvm::Instruction& where) {
        if (fields_.has(place)) {
            if ((flags & inside) != 0 && (flags & exact) == 0)
                errors_.refuse(where, "an address inside of a managed object is stored into a "
                                      "marked field, which must hold that of an object's first "
                                      "byte. Allocate the part by itself");
            return;
        }
        stored_outside(place, where);
    }

    void stored_outside(llvm::Value* place, llvm::Instruction& where) {
        llvm::SmallVector<const llvm::Value*, 8> objects;
        llvm::getUnderlyingObjects(place, objects, nullptr, 0);
        for (const llvm::Value* found : objects) {
            auto* object = const_cast<llvm::Value*>(found);
            if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object)) {
                note_held(*variable, *place, where);
            } else if (auto* parameter = llvm::dyn_cast<llvm::Argument>(object)) {
                stored_by_callee(*parameter, where);
            } else if ((flags_.lookup(object) & holder) != 0) {
                // A variable whose address was kept in another one. It has the flag already; which
                // one it is, and where in it the address comes to be, is not known.
                forget_places();
            } else if (llvm::isa<llvm::GlobalValue>(object)) {
                errors_.refuse(where, llvm::Twine("the address of a managed object is stored into "
                                                  "a global variable") +
                                          must_not_outlive +
                                          "Mark the variable's field with OBASE_GUIDED and let it "
                                          "own the object, or keep a key");
            } else if (!llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(object)) {
                errors_.refuse(where, llvm::Twine("the address of a managed object is kept in "
                                                  "memory that outlives the operation, in a field "
                                                  "that is not marked or in a container") +
                                          must_not_outlive +
                                          "Mark the field with OBASE_GUIDED if it owns the object, "
                                          "else keep a key or look it up again");
            }
        }
    }

    // One of the variable's bytes is `place`, into which an address comes. Only a store says where.
    void note_held(llvm::AllocaInst& variable, const llvm::Value& place,
                   const llvm::Instruction& where) {
        places& known = held_[&variable];
        const std::optional<std::int64_t> offset = llvm::isa<llvm::StoreInst>(where) && !no_places_
                                                       ? offset_in(variable, place)
                                                       : std::nullopt;
        const bool changes = !known.anywhere && (!offset || known.at.insert(*offset).second);
        if (!offset) known.anywhere = true;
        raise(variable, holder);
        if (changes) look_again(variable);
    }

    // At how many bytes from the variable's beginning, if that is always the same.
    static std::optional<std::int64_t> offset_in(const llvm::AllocaInst& variable,
                                                 const llvm::Value& place) {
        const llvm::DataLayout& layout = variable.getDataLayout();
        llvm::APInt bytes(layout.getIndexTypeSizeInBits(variable.getType()), 0);
        if (place.stripAndAccumulateConstantOffsets(layout, bytes, true) != &variable)
            return std::nullopt;
        return bytes.getSExtValue();
    }

    // Whether what is loaded from a part of a variable may be an address that was stored there, and
    // not into another part: a struct with an address among its members has others, too.
    bool may_hold(const llvm::Value& place, const llvm::Instruction& load) const {
        const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(place.stripInBoundsOffsets());
        if (variable == nullptr) return true;
        const auto known = held_.find(variable);
        if (known == held_.end() || known->second.anywhere) return true;
        const std::optional<std::int64_t> begin = offset_in(*variable, place);
        if (!begin) return true;
        constexpr std::int64_t address_bytes = 8;
        const auto bytes = static_cast<std::int64_t>(
            load.getDataLayout().getTypeStoreSize(load.getType()).getKnownMinValue());
        const auto first = known->second.at.upper_bound(*begin - address_bytes);
        return first != known->second.at.end() && *first < *begin + bytes;
    }

    void forget_places() {
        if (std::exchange(no_places_, true)) return;
        for (auto& [variable, known] : held_)
            if (!std::exchange(known.anywhere, true))
                look_again(*const_cast<llvm::AllocaInst*>(variable));
    }

    // More is known of the variable than when its uses were looked at.
    void look_again(llvm::Value& v) {
        if (flags_.lookup(&v) == 0) return;
        work_.push_back(&v);
        for (llvm::User* user : v.users())
            if (llvm::isa<llvm::GetElementPtrInst, llvm::BitCastInst>(user)) look_again(*user);
    }

    // Into what the parameter points to: for each caller, into what it hands over.
    void stored_by_callee(llvm::Argument& parameter, llvm::Instruction& where) {
        if (!filled_.insert(&parameter).second) return;
        llvm::Function& f = *parameter.getParent();
        if (plan_.operations.contains(&f) && !parameter.hasStructRetAttr()) {
            errors_.refuse(where, llvm::Twine("an operation stores the address of a managed object "
                                              "into its caller's memory") +
                                      must_not_outlive + "Copy what the caller needs");
            return;
        }
        if (plan_.operations.contains(&f)) {
            errors_.refuse(where, returns_address());
            return;
        }
        raise(parameter, holder);
        for_each_call(f, [&](llvm::CallBase& call) {
            if (parameter.getArgNo() < call.arg_size())
                stored_outside(call.getArgOperand(parameter.getArgNo()), call);
        });
    }

    void indexed(llvm::Value& v, unsigned flags, llvm::GetElementPtrInst& gep, const llvm::Use& u) {
        if (u.getOperandNo() != llvm::GetElementPtrInst::getPointerOperandIndex()) {
            if ((flags & borrowed) != 0 && (flags & holder) == 0)
                errors_.refuse(gep, "the address of a managed object is used as an index, which "
                                    "changes when the object moves. Use a key of the object");
            return;
        }
        if ((flags & holder) != 0 && (flags & exact) == 0) {
            raise(gep, flags);
            return;
        }
        const bool first = gep.hasAllZeroIndices();
        const auto* steps = llvm::dyn_cast<llvm::ConstantInt>(*gep.idx_begin());
        const bool neighbour = steps == nullptr || !steps->isZero();
        // Bytes of a text or a buffer are its inside; another object is somebody else's.
        if ((flags & exact) != 0 && neighbour && !gep.getSourceElementType()->isIntegerTy(8) &&
            !fields_.has(&v)) {
            errors_.refuse(gep, "arithmetic on the address of a managed object. Objects have no "
                                "neighbours: make the array a member of the object, or index an "
                                "array that is not marked");
            return;
        }
        raise(gep, first ? flags : (flags & ~unsigned{exact}) | inside);
    }

    void returned(unsigned flags, llvm::Instruction& where) {
        llvm::Function& f = *where.getFunction();
        if ((flags & borrowed) == 0) return;
        if (plan_.operations.contains(&f)) {
            errors_.refuse(where, returns_address());
            return;
        }
        for_each_call(f, [&](llvm::CallBase& call) { raise(call, flags); });
    }

    static std::string returns_address() {
        return (llvm::Twine("an operation returns the address of a managed object") +
                must_not_outlive +
                "Return a copy, take a function to be called with the object, or make this "
                "function a part of operations (private, static or OBASE_INTERNAL)")
            .str();
    }

    void passed(unsigned flags, llvm::CallBase& call, const llvm::Use& u) {
        if (call.isCallee(&u)) {
            if ((flags & borrowed) != 0 && (flags & holder) == 0)
                errors_.refuse(call, "the address of a managed object is called");
            return;
        }
        if (!call.isArgOperand(&u)) return; // of a bundle: an assumption
        if (call.isInlineAsm()) {
            if ((flags & borrowed) != 0)
                errors_.refuse(call, "the address of a managed object is handed to inline "
                                     "assembly, which cannot be checked. Hand over a copy of what "
                                     "it needs");
            return;
        }
        if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
            passed_to_intrinsic(flags, *intrinsic, u);
            return;
        }
        const unsigned number = call.getArgOperandNo(&u);
        llvm::Function* callee = callee_of(call);
        if (number >= call.getFunctionType()->getNumParams()) {
            if ((flags & borrowed) != 0)
                errors_.refuse(call, "the address of a managed object is among the variable "
                                     "arguments of a call, where it cannot be followed. Hand over "
                                     "what the object holds");
            return;
        }
        if (callee == nullptr || callee->isDeclaration() || number >= callee->arg_size()) return;
        raise(*callee->getArg(number), flags);
    }

    void passed_to_intrinsic(unsigned flags, llvm::IntrinsicInst& call, const llvm::Use& u) {
        switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::launder_invariant_group:
        case llvm::Intrinsic::strip_invariant_group:
        case llvm::Intrinsic::ptrmask:
            raise(call, flags);
            return;
        case llvm::Intrinsic::memcpy:
        case llvm::Intrinsic::memcpy_inline:
        case llvm::Intrinsic::memmove:
            // A variable with an address in it is copied.
            if (call.getArgOperandNo(&u) == 1 && (flags & holder) != 0)
                stored_outside(call.getArgOperand(0), call);
            return;
        case llvm::Intrinsic::vastart:
        case llvm::Intrinsic::vacopy:
            return;
        default:
            return; // annotations, lifetimes, assumptions, and what works on the bytes
        }
    }

    const slots& fields_;
    const llvm::SetVector<llvm::CallBase*>& allocations_;
    const scope_plan& plan_;
    problems& errors_;
    llvm::DenseMap<llvm::Value*, unsigned> flags_;
    llvm::SmallVector<llvm::Value*, 64> work_;
    llvm::DenseSet<const llvm::Argument*> filled_;
    // Which bytes of a variable hold addresses that were stored there.
    struct places {
        bool anywhere = false;
        std::set<std::int64_t> at;
    };
    std::map<const llvm::AllocaInst*, places> held_;
    bool no_places_ = false; // all of them may be anywhere
};

} // namespace

void check_escapes(const slots& fields, const llvm::SetVector<llvm::CallBase*>& allocations,
                   const scope_plan& plan, problems& errors) {
    checker(fields, allocations, plan, errors).check();
}

} // namespace obase::passes
