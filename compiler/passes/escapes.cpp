// SPDX-License-Identifier: MIT
//
// Finds addresses from marked fields that can be used after their operation has ended.
//
// Each value gets flags, which only grow, and a list of values whose flags have grown is worked off.
// They flow forwards: from loads of slots and from allocations that end in slots, through casts, phis,
// arguments and results of functions compiled here, variables in frames. Where one reaches what
// outlives the operation, that is an error with its place and what to do.
//
// One summary per function, for all its callers: what is handed to it by one comes out at all. So a
// helper that is used both for borrowed addresses and for others may be refused without need; two
// helpers then help. What code that is compiled elsewhere does with an address is not followed; but
// for functions that are known to keep it, it is accepted on trust (trust.cpp).
#include "instrumentation.hpp"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace obase::passes {

namespace {

enum : unsigned {
    borrowed = 1, // an address from a marked field, or made of one
    exact = 2,    // of an object's first byte, for certain
    inside = 4,   // of another byte of it, for certain
    holder = 8,   // the address of a variable that a borrowed address was stored into
    member = 16,  // of what an object begins with; with exact
    deep = 64,    // with holder: one in which the address of such a variable is
    loaded = 128, // from such a variable: perhaps borrowed, perhaps something else
    result = 256, // with loaded: of a function that got a borrowed address, and may return it
};

constexpr llvm::StringLiteral must_not_outlive = "; the object may move when the operation ends. ";
// Not to mark this field, too: two marked fields would each free or move the object.
constexpr llvm::StringLiteral one_owner =
    "An object has one owner, the marked field that it is in. Keep a key or an index instead, or "
    "search for it in each operation; that goes for parents, tails and previous elements. Mark "
    "this one with OBASE_GUIDED only if the object leaves the other within the operation";

// Of a type that may be, or have in it, an address.
bool has_address(llvm::Type* type) {
    if (type->isPtrOrPtrVectorTy()) return true;
    return llvm::any_of(type->subtypes(), has_address);
}

class checker {
  public:
    checker(llvm::Module& module, const slots& fields, const allocations& allocated,
            const marks& said, const scope_plan& plan, problems& errors, trust& accepted)
        : module_(module), fields_(fields), allocated_(allocated), said_(said), plan_(plan),
          errors_(errors), accepted_(accepted), layout_(module.getDataLayout()) {}

    void check() {
        for (llvm::Instruction* access : fields_.accesses)
            if (!llvm::isa<llvm::StoreInst>(access)) raise(*access, borrowed | exact);
        for (llvm::CallBase* call : allocated_.found) raise(*call, borrowed | exact);
        for (llvm::CallBase* call : allocated_.printed)
            stored_outside(call->getArgOperand(0), *call, holder, 0);
        for (llvm::Function& f : module_)
            if (f.isDeclaration() && said_.of(f) == role::internal &&
                has_address(f.getReturnType()))
                for_each_call(
                    f, [this](llvm::CallBase& call) { raise(call, borrowed | loaded | result); });
        // Such a function may put an address into a variable that it is told of, too.
        for (llvm::Function& f : module_)
            if (f.isDeclaration() && said_.of(f) == role::internal)
                for_each_call(f, [this](llvm::CallBase& call) { filled_elsewhere(call); });
        while (!work_.empty()) {
            llvm::Value* v = work_.pop_back_val();
            const unsigned flags = flags_.lookup(v);
            for (const llvm::Use& u : v->uses())
                if (auto* user = llvm::dyn_cast<llvm::Instruction>(u.getUser()))
                    reaches(*v, flags, *user, u);
            if (work_.empty()) recheck();
        }
        // When all flags are known: an address that is also one inside of the object is a byte of it.
        for (llvm::Instruction* i : differences_)
            if (is_object(i->getOperand(0)) && is_object(i->getOperand(1)))
                errors_.refuse(*i, "the distance of two managed objects, which changes when one of "
                                   "them moves. Keep the order in a counter or a key of the "
                                   "objects");
        for (llvm::Instruction* i : orders_)
            if (is_object(i->getOperand(0)) && is_object(i->getOperand(1)))
                errors_.refuse(*i, "the order of two managed objects by their addresses, which "
                                   "changes when one of them moves. Compare a counter or a key of "
                                   "the objects");
        for (const auto& [where, object] : kept_)
            if ((flags_.lookup(object) & holder) == 0) refuse_kept(*where);
        for (llvm::Instruction* where : stored_in_slots_)
            if ((flags_.lookup(stored_value(*where)) & inside) != 0)
                errors_.refuse(*where, "an address inside of a managed object is stored into a "
                                       "marked field, which must hold that of an object's first "
                                       "byte. Allocate the part by itself");
    }

  private:
    void raise(llvm::Value& v, unsigned flags) {
        unsigned& known = flags_[&v];
        if ((known | flags) == known) return;
        known |= flags;
        work_.push_back(&v);
    }

    void filled_elsewhere(llvm::CallBase& call) {
        for (llvm::Value* argument : call.args()) {
            auto* variable =
                llvm::dyn_cast<llvm::AllocaInst>(llvm::getUnderlyingObject(argument, 0));
            if (variable != nullptr && has_address(variable->getAllocatedType()) &&
                !fields_.in_type(variable->getAllocatedType()))
                stored_outside(argument, call, holder, 0);
        }
    }

    void reaches(llvm::Value& v, unsigned flags, llvm::Instruction& user, const llvm::Use& u) {
        switch (user.getOpcode()) {
        case llvm::Instruction::Load:
            // Of a field of the object: its own. Of a variable: perhaps what was stored into it, and
            // perhaps the address of such a variable.
            // Numbers beside it are numbers.
            if ((flags & holder) != 0 && !fields_.is_access(&user) &&
                !user.getType()->isFPOrFPVectorTy()) {
                const bool number = user.getType()->isIntOrIntVectorTy();
                if (number ? !holds_as_number(v, user)
                           : is_variable(flags) && !may_hold(v, sizeof(void*)))
                    elsewhere_.insert(&u);
                else
                    raise(user, borrowed | loaded | ((flags & deep) != 0 ? holder | deep : 0));
            }
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
            indexed(flags, llvm::cast<llvm::GetElementPtrInst>(user), u);
            return;
        case llvm::Instruction::PHI:
        case llvm::Instruction::Select:
        case llvm::Instruction::Freeze:
        case llvm::Instruction::BitCast:
        case llvm::Instruction::IntToPtr:
        case llvm::Instruction::InsertValue:
            raise(user, flags);
            return;
        case llvm::Instruction::PtrToInt:
            if (!is_sanitizer_check(user)) raise(user, flags);
            return;
        case llvm::Instruction::ExtractValue:
            // A compare-exchange has the address as a number; elsewhere what is no address is a
            // number beside one.
            if (user.getType()->isPointerTy() || user.getType()->isAggregateType() ||
                (llvm::isa<llvm::AtomicCmpXchgInst>(v) && user.getType()->isIntegerTy(64)))
                raise(user, flags);
            return;
        case llvm::Instruction::ICmp:
            if (llvm::cast<llvm::ICmpInst>(user).isRelational()) orders_.insert(&user);
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
            if (is_difference(user)) {
                if ((flags & borrowed) != 0) differences_.insert(&user);
                return;
            }
            if (is_alignment_check(user)) return;
            if (user.isBinaryOp() || user.isCast() || llvm::isa<llvm::SwitchInst>(user)) {
                // A number loaded from a variable may be any number. It stays what it is: the
                // address may be hidden in it and come out again.
                if ((flags & (holder | loaded)) != 0) {
                    if (user.getType()->isIntegerTy(64) || user.getType()->isPointerTy())
                        raise(user, flags & ~unsigned{exact | inside | member});
                    return;
                }
                if ((flags & borrowed) != 0)
                    errors_.refuse(user, "the address of a managed object is computed with as a "
                                         "number, which changes when the object moves. Take a key "
                                         "or a counter of the object for hashes and orders");
                return;
            }
            if ((flags & borrowed) != 0 && (flags & (holder | loaded)) == 0)
                errors_.refuse(user, "this use of the address of a managed object is not "
                                     "understood. Use it by loads, stores and calls");
        }
    }

    // How far two addresses are apart: the same wherever the object is, if they are of one object.
    static bool is_difference(const llvm::Instruction& i) {
        return i.getOpcode() == llvm::Instruction::Sub &&
               llvm::isa<llvm::PtrToIntInst>(i.getOperand(0)) &&
               llvm::isa<llvm::PtrToIntInst>(i.getOperand(1));
    }
    // True if the value is certainly the address of a managed object's first byte.
    bool is_object(const llvm::Value* v) const {
        return (flags_.lookup(v) & (exact | inside | holder | member)) == exact;
    }
    // An object keeps its alignment.
    static bool is_alignment_check(const llvm::Instruction& i) {
        // p & 63, p % 64
        const bool masks = i.getOpcode() == llvm::Instruction::And;
        const auto* mask = masks || i.getOpcode() == llvm::Instruction::URem
                               ? llvm::dyn_cast<llvm::ConstantInt>(i.getOperand(1))
                               : nullptr;
        if (!masks && mask != nullptr && !mask->getValue().isPowerOf2()) return false;
        return mask != nullptr && mask->getValue().ule(largest_alignment) &&
               llvm::all_of(i.users(),
                            [](const llvm::User* user) { return llvm::isa<llvm::ICmpInst>(user); });
    }
    static constexpr std::uint64_t largest_alignment = 4096; // of the heaps

    static const llvm::Value* stored_value(const llvm::Instruction& where) {
        if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&where))
            return store->getValueOperand();
        if (const auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&where))
            return exchange->getNewValOperand();
        return llvm::cast<llvm::AtomicRMWInst>(where).getValOperand();
    }

    // The value is stored to the place.
    void stored(unsigned flags, llvm::Value* place, llvm::Instruction& where) {
        if (fields_.has(place)) {
            // When all flags are known: a variable may be both the object's address and one inside.
            if ((flags & borrowed) != 0) stored_in_slots_.insert(&where);
            return;
        }
        // A struct or a vector has it at one of several places.
        const auto* store = llvm::dyn_cast<llvm::StoreInst>(&where);
        const bool one =
            store == nullptr || !(store->getValueOperand()->getType()->isAggregateType() ||
                                  store->getValueOperand()->getType()->isVectorTy());
        stored_outside(place, where, variable_with(flags), one ? 0 : somewhere);
    }

    // The object that a place is part of. A function that returns where in its argument something
    // is, as the members of smart pointers do, is looked through.
    static llvm::SmallVector<llvm::Value*, 8> memory_of(llvm::Value* place) {
        llvm::SmallVector<llvm::Value*, 8> result;
        llvm::SmallVector<llvm::Value*, 8> work{place};
        llvm::DenseSet<llvm::Value*> seen{place};
        while (!work.empty()) {
            llvm::SmallVector<const llvm::Value*, 8> objects;
            llvm::getUnderlyingObjects(work.pop_back_val(), objects, nullptr, 0);
            for (const llvm::Value* object : objects) {
                auto* call = llvm::dyn_cast<llvm::CallBase>(const_cast<llvm::Value*>(object));
                llvm::SmallVector<llvm::Value*, 2> passed_on;
                if (call == nullptr || !returns_arguments(*call, passed_on)) {
                    result.push_back(const_cast<llvm::Value*>(object));
                    continue;
                }
                for (llvm::Value* argument : passed_on)
                    if (seen.insert(argument).second) work.push_back(argument);
            }
        }
        return result;
    }
    // The argument in which all that the function returns lies, if there is one.
    static bool returns_arguments(const llvm::CallBase& call,
                                  llvm::SmallVectorImpl<llvm::Value*>& arguments,
                                  unsigned deep = 16) {
        const llvm::Function* callee = callee_of(call);
        if (callee == nullptr || callee->isDeclaration() || deep == 0) return false;
        for (const llvm::Instruction& i : llvm::instructions(*callee)) {
            const auto* result = llvm::dyn_cast<llvm::ReturnInst>(&i);
            if (result == nullptr || result->getReturnValue() == nullptr) continue;
            llvm::SmallVector<const llvm::Value*, 4> objects;
            llvm::getUnderlyingObjects(result->getReturnValue(), objects, nullptr, 0);
            for (const llvm::Value* object : objects) {
                if (const auto* inner = llvm::dyn_cast<llvm::CallBase>(object)) {
                    llvm::SmallVector<llvm::Value*, 2> of_callee;
                    if (!returns_arguments(*inner, of_callee, deep - 1)) return false;
                    for (llvm::Value* given : of_callee)
                        if (!add_argument(call, llvm::getUnderlyingObject(given, 0), arguments))
                            return false;
                } else if (!add_argument(call, object, arguments)) {
                    return false;
                }
            }
        }
        return !arguments.empty();
    }
    static bool add_argument(const llvm::CallBase& call, const llvm::Value* object,
                             llvm::SmallVectorImpl<llvm::Value*>& arguments) {
        const auto* parameter = llvm::dyn_cast<llvm::Argument>(object);
        if (parameter == nullptr || parameter->getArgNo() >= call.arg_size()) return false;
        arguments.push_back(call.getArgOperand(parameter->getArgNo()));
        return true;
    }

    // The flags of a variable into which a value with these flags is stored.
    static unsigned variable_with(unsigned flags) {
        return (flags & holder) != 0 ? holder | deep : unsigned{holder};
    }
    // Into what is `distance` bytes behind the place, a variable `as` which counts from now on.
    void stored_outside(llvm::Value* place, llvm::Instruction& where, unsigned as,
                        std::int64_t distance) {
        for (llvm::Value* object : memory_of(place)) {
            const std::int64_t at = behind(offset_in(*object, *place), distance);
            if (llvm::isa<llvm::AllocaInst>(object)) {
                places_[object].insert(at);
                raise(*object, as);
            } else if (auto* parameter = llvm::dyn_cast<llvm::Argument>(object)) {
                stored_by_callee(*parameter, where, as, at);
            } else if ((flags_.lookup(object) & holder) != 0) {
                // A variable whose address was kept in another one. It has the flag already; which
                // one it is, and where in it the address comes to be, is not known.
                anywhere_ = true;
            } else if (llvm::isa<llvm::GlobalValue>(object)) {
                errors_.refuse(where, llvm::Twine("the address of a managed object is stored into "
                                                  "a global variable") +
                                          must_not_outlive + one_owner);
            } else if (!llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(object)) {
                // Unless it turns out to be a variable.
                kept_.insert({&where, object});
            }
        }
    }
    void refuse_kept(llvm::Instruction& where) {
        errors_.refuse(where, llvm::Twine("the address of a managed object is kept in memory that "
                                          "outlives the operation, in a field that is not marked "
                                          "or in a container") +
                                  must_not_outlive + one_owner);
    }

    // Into what the parameter points to: for each caller, into what it hands over.
    void stored_by_callee(llvm::Argument& parameter, llvm::Instruction& where, unsigned as,
                          std::int64_t at) {
        if (!filled_.insert({&parameter, as, at}).second) return;
        llvm::Function& f = *parameter.getParent();
        if (plan_.operations.contains(&f) && !parameter.hasStructRetAttr()) {
            errors_.refuse(where, llvm::Twine("an operation stores the address of a managed object "
                                              "into its caller's memory") +
                                      must_not_outlive + "Copy what the caller needs. " +
                                      one_owner);
            return;
        }
        if (plan_.operations.contains(&f)) {
            errors_.refuse(where, returns_address());
            return;
        }
        places_[&parameter].insert(at);
        raise(parameter, as);
        const bool all_seen = for_each_call(f, [&](llvm::CallBase& call) {
            if (parameter.getArgNo() < call.arg_size())
                stored_outside(call.getArgOperand(parameter.getArgNo()), call, as, at);
        });
        // A virtual method, or another function that is called through a pointer with its memory.
        if (!all_seen && called_through_pointer_.contains(&f)) refuse_kept(where);
    }

    // Where in a variable, or in what a parameter points to, addresses were stored: other members of
    // the same struct are not concerned.
    static constexpr std::int64_t somewhere = INT64_MIN; // in an array
    static constexpr std::uint64_t unknown_size = UINT64_MAX;
    static bool is_variable(unsigned flags) { return (flags & ~unsigned{deep}) == holder; }
    static std::int64_t behind(std::int64_t offset, std::int64_t distance) {
        return offset == somewhere || distance == somewhere ? somewhere : offset + distance;
    }
    std::int64_t offset_in(const llvm::Value& object, llvm::Value& address) const {
        std::int64_t offset = 0;
        const llvm::Value* base = llvm::GetPointerBaseWithConstantOffset(&address, offset, layout_);
        return base == &object ? offset : somewhere;
    }
    // True if an address was stored into one of the `bytes` behind `address`, which is in a
    // variable that holds one.
    bool may_hold(llvm::Value& address, std::uint64_t bytes) const {
        if (anywhere_) return true;
        const llvm::Value* object = llvm::getUnderlyingObject(&address, 0);
        const auto places = places_.find(object);
        if (places == places_.end()) return true;
        const std::int64_t from = offset_in(*object, address);
        return from == somewhere || llvm::any_of(places->second, [=](std::int64_t at) {
                   return at == somewhere ||
                          (at >= from && static_cast<std::uint64_t>(at - from) < bytes);
               });
    }
    // True if the number that is loaded there is certainly such an address: it was copied as bytes.
    bool holds_as_number(llvm::Value& address, const llvm::Instruction& number) const {
        if (layout_.getTypeStoreSize(number.getType()) != sizeof(void*)) return false;
        const llvm::Value* object = llvm::getUnderlyingObject(&address, 0);
        const auto places = places_.find(object);
        if (places == places_.end()) return false;
        const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object);
        llvm::Type* of = variable != nullptr ? variable->getAllocatedType() : nullptr;
        while (of != nullptr && of->isArrayTy()) of = of->getArrayElementType();
        const std::int64_t from = offset_in(*object, address);
        return places->second.contains(somewhere) ? of == number.getType()
                                                  : places->second.contains(from);
    }
    void hand_on_places(llvm::Value& address, llvm::Argument& parameter) {
        const llvm::Value* object = llvm::getUnderlyingObject(&address, 0);
        const std::int64_t from = offset_in(*object, address);
        const auto known = places_.find(object);
        std::set<std::int64_t>& places = places_[&parameter];
        if (known == places_.end() || from == somewhere) {
            places.insert(somewhere);
            return;
        }
        for (const std::int64_t at : known->second)
            if (at == somewhere || at >= from) places.insert(at == somewhere ? at : at - from);
    }
    // More places may have become known since these uses were looked at.
    void recheck() {
        for (;;) {
            std::size_t before = 0, after = 0;
            for (const auto& [object, places] : places_) before += places.size();
            for (const auto& [address, parameter] : handed_on_)
                hand_on_places(*address, *parameter);
            for (const auto& [object, places] : places_) after += places.size();
            if (before == after) break;
        }
        for (const auto& [where, object] : kept_)
            anywhere_ = anywhere_ || (flags_.lookup(object) & holder) != 0;
        const auto skipped = std::exchange(elsewhere_, {});
        for (const llvm::Use* u : skipped)
            reaches(*u->get(), flags_.lookup(u->get()),
                    *llvm::cast<llvm::Instruction>(u->getUser()), *u);
    }

    void indexed(unsigned flags, llvm::GetElementPtrInst& gep, const llvm::Use& u) {
        if (u.getOperandNo() != llvm::GetElementPtrInst::getPointerOperandIndex()) {
            if ((flags & borrowed) != 0 && (flags & (holder | loaded)) == 0)
                errors_.refuse(gep, "the address of a managed object is used as an index, which "
                                    "changes when the object moves. Use a key of the object");
            return;
        }
        if ((flags & (holder | loaded)) != 0 && (flags & exact) == 0) {
            raise(gep, flags);
            return;
        }
        // An element of an array, a byte of a text: the inside of the object, in which it is good as
        // long as the object's own address.
        if (!gep.hasAllZeroIndices())
            raise(gep, (flags & ~unsigned{exact | member}) | inside);
        else
            raise(gep, gep.getNumIndices() > 1 ? flags | member : flags);
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
            if ((flags & borrowed) != 0 && (flags & (holder | loaded)) == 0)
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
        if (is_variable(flags) && callee != nullptr && !callee->isDeclaration() &&
            number < callee->arg_size()) {
            // clang says how large the object is that a method or a reference parameter is about.
            const std::uint64_t bytes = callee->getParamDereferenceableBytes(number);
            if (!may_hold(*u.get(), bytes != 0 ? bytes : unknown_size)) {
                elsewhere_.insert(&u);
                return;
            }
            handed_on_.insert({u.get(), callee->getArg(number)});
            hand_on_places(*u.get(), *callee->getArg(number));
        }
        if (number >= call.getFunctionType()->getNumParams()) {
            if ((flags & borrowed) == 0 ||
                (callee != nullptr && look_up(*callee).reads_variable_arguments))
                return;
            if (callee != nullptr && takes_its_arguments(*callee))
                errors_.refuse(call, "the address of a managed object is among the variable "
                                     "arguments of " +
                                         callee->getName() +
                                         ", which takes it by va_arg, where it cannot be followed. "
                                         "Hand it over as a parameter of its own");
            else // a function elsewhere, or one here that hands all on, to vprintf
                accepted_.accept(call, number, (flags & holder) == 0);
            return;
        }
        if (callee == nullptr) {
            accepted_.accept(call, number, (flags & holder) == 0);
            for (const target& one : targets_of(call))
                if (number < one.function->arg_size() && !one.function->isDeclaration()) {
                    // What is seen to get there has arguments that are seen, too.
                    if (!one.certain) called_through_pointer_.insert(one.function);
                    raise(*one.function->getArg(number),
                          one.certain ? flags
                                      : (flags & ~unsigned{exact | inside | member}) | loaded);
                }
            returned_elsewhere(flags, call, {}, u);
        } else if (callee->isDeclaration() || number >= callee->arg_size()) {
            passed_elsewhere(flags, call, *callee, u);
        } else {
            raise(*callee->getArg(number), flags);
        }
    }

    // True if the function reads one of its variable arguments itself.
    static bool takes_its_arguments(llvm::Function& f) {
        llvm::SmallVector<const llvm::Value*, 8> lists;
        for (const llvm::Instruction& i : llvm::instructions(f)) {
            if (llvm::isa<llvm::VAArgInst>(i)) return true;
            if (const auto* begin = llvm::dyn_cast<llvm::VAStartInst>(&i))
                lists.push_back(llvm::getUnderlyingObject(begin->getArgList(), 0));
        }
        for (const llvm::Instruction& i : llvm::instructions(f))
            if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i);
                load != nullptr &&
                llvm::is_contained(lists, llvm::getUnderlyingObject(load->getPointerOperand(), 0)))
                return true;
        return false;
    }

    // To a function that is not compiled here.
    void passed_elsewhere(unsigned flags, llvm::CallBase& call, llvm::Function& callee,
                          const llvm::Use& u) {
        const unsigned number = call.getArgOperandNo(&u);
        if (is_memory_call(call)) {
            if (reallocates(call) && number == 0 && (flags & borrowed) != 0)
                raise(call, borrowed | exact);
            return;
        }
        const known_function known = look_up(callee);
        if ((known.keeps >> number & 1) != 0)
            errors_.refuse(call, "the address of a managed object is handed to " +
                                     callee.getName() + ", which keeps it" + must_not_outlive +
                                     "Hand over a key, or a copy of what is needed");
        else
            accepted_.accept(call, number, (flags & holder) == 0);
        if (known.calls >= 0 && number == known.of)
            for (const target& one :
                 targets_of(*call.getArgOperand(static_cast<unsigned>(known.calls)), nullptr))
                for (llvm::Argument& element : one.function->args())
                    if (!one.function->isDeclaration() && element.getArgNo() < 2 &&
                        element.getType()->isPointerTy())
                        element_of(flags, *u.get(), element);
        if (known.end >= 0 && number == 0 && (flags & borrowed) != 0)
            stored_outside(call.getArgOperand(static_cast<unsigned>(known.end)), call, holder, 0);
        returned_elsewhere(flags, call, known, u);
    }

    // The parameter is the address of an element of an array, which is managed or a variable.
    void element_of(unsigned flags, llvm::Value& array, llvm::Argument& element) {
        if ((flags & holder) != 0) {
            handed_on_.insert({&array, &element});
            places_[&element].insert(somewhere);
        }
        unsigned as = flags & ~unsigned{exact | member};
        if ((flags & borrowed) != 0) as |= inside;
        raise(element, as);
    }

    // What a function that is not known may return that was handed an address with these flags.
    void returned_elsewhere(unsigned flags, llvm::CallBase& call, const known_function& known,
                            const llvm::Use& u) {
        if (!has_address(call.getType())) return;
        const bool concerned = call.getArgOperandNo(&u) == known.of;
        switch (known.result) {
        case known_function::gives::other:
            return;
        case known_function::gives::argument:
            if (concerned) raise(call, flags & ~unsigned{exact | inside | member});
            return;
        case known_function::gives::part:
            if (concerned) raise(call, (flags & ~unsigned{exact | member}) | inside);
            return;
        case known_function::gives::unknown:
            // Of a variable: what is in it.
            if ((flags & borrowed) == 0 && !may_hold(*u.get(), unknown_size))
                elsewhere_.insert(&u);
            else
                raise(call, borrowed | loaded | result | (flags & (holder | deep)));
            return;
        }
    }

    // Functions of this unit that a call through a pointer may be of.
    struct target {
        llvm::Function* function;
        bool certain; // it is seen how the pointer comes there
    };
    llvm::SmallVector<target, 4> targets_of(const llvm::CallBase& call) {
        return targets_of(*call.getCalledOperand(), call.getFunctionType());
    }
    // `type` is null if it is not known.
    llvm::SmallVector<target, 4> targets_of(llvm::Value& pointer, const llvm::FunctionType* type) {
        llvm::SmallVector<target, 4> found;
        llvm::SmallVector<llvm::Value*, 8> work{&pointer};
        llvm::DenseSet<llvm::Value*> seen;
        bool all_seen = true;
        while (!work.empty()) {
            llvm::Value* v = work.pop_back_val()->stripPointerCasts();
            if (!seen.insert(v).second) continue;
            if (auto* f = llvm::dyn_cast<llvm::Function>(v)) {
                found.push_back({f, true});
            } else if (llvm::isa<llvm::PHINode, llvm::SelectInst>(v)) {
                for (llvm::Value* one : llvm::cast<llvm::Instruction>(v)->operands())
                    if (one->getType()->isPointerTy()) work.push_back(one);
            } else if (auto* parameter = llvm::dyn_cast<llvm::Argument>(v)) {
                for_each_call(*parameter->getParent(), [&](llvm::CallBase& caller) {
                    if (parameter->getArgNo() < caller.arg_size())
                        work.push_back(caller.getArgOperand(parameter->getArgNo()));
                });
            } else if (!llvm::isa<llvm::Constant>(v)) {
                all_seen = false;
            }
        }
        if (all_seen || type == nullptr) return found;
        for (llvm::Function& f : module_)
            if (!f.isDeclaration() && f.getFunctionType() == type && f.hasAddressTaken())
                found.push_back({&f, false});
        return found;
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
            if (call.getArgOperandNo(&u) == 1 && (flags & holder) != 0) copied(flags, call, u);
            return;
        case llvm::Intrinsic::vastart:
        case llvm::Intrinsic::vacopy:
            return;
        default:
            return; // annotations, lifetimes, assumptions, and what works on the bytes
        }
    }

    // The bytes of a variable, with those of the addresses in it.
    void copied(unsigned flags, llvm::IntrinsicInst& call, const llvm::Use& u) {
        const llvm::Value* object = llvm::getUnderlyingObject(u.get(), 0);
        const std::int64_t from = offset_in(*object, *u.get());
        const auto known = places_.find(object);
        const unsigned as = flags & (holder | deep);
        if (known == places_.end() || from == somewhere || anywhere_) {
            stored_outside(call.getArgOperand(0), call, as, somewhere);
            return;
        }
        elsewhere_.insert(&u); // more places may become known
        const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(2));
        const std::set<std::int64_t> places = known->second; // the copy may be of the same variable
        for (const std::int64_t at : places)
            if (at == somewhere)
                stored_outside(call.getArgOperand(0), call, as, somewhere);
            else if (at >= from && (bytes == nullptr ||
                                    static_cast<std::uint64_t>(at - from) < bytes->getZExtValue()))
                stored_outside(call.getArgOperand(0), call, as, at - from);
    }

    llvm::Module& module_;
    const slots& fields_;
    const allocations& allocated_;
    const marks& said_;
    const scope_plan& plan_;
    problems& errors_;
    trust& accepted_;
    llvm::DenseMap<llvm::Value*, unsigned> flags_;
    llvm::SmallVector<llvm::Value*, 64> work_;
    const llvm::DataLayout& layout_;
    std::set<std::tuple<const llvm::Argument*, unsigned, std::int64_t>> filled_;
    std::map<const llvm::Value*, std::set<std::int64_t>> places_;
    std::set<std::pair<llvm::Value*, llvm::Argument*>> handed_on_;
    llvm::DenseSet<const llvm::Function*> called_through_pointer_; // with such an address
    bool anywhere_ = false;                       // places_ does not have all of them
    llvm::SetVector<const llvm::Use*> elsewhere_; // of holders, but not of what they hold
    llvm::SetVector<llvm::Instruction*> differences_;
    llvm::SetVector<llvm::Instruction*> orders_;
    llvm::SetVector<llvm::Instruction*> stored_in_slots_;
    // Where an address is stored, and the memory, which outlives the operation or is a variable.
    llvm::SetVector<std::pair<llvm::Instruction*, llvm::Value*>> kept_;
};

} // namespace

void check_escapes(llvm::Module& module, const slots& fields, const allocations& allocated,
                   const marks& said, const scope_plan& plan, problems& errors, trust& accepted) {
    checker(module, fields, allocated, said, plan, errors, accepted).check();
}

} // namespace obase::passes
