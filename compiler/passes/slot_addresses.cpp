// SPDX-License-Identifier: MIT
//
// Every value that is the address of a marked field.
//
// The front end annotates each mention of a field. From there the address is followed: into elements
// of arrays, through phis and selects, and where it is handed to a function (std::atomic's members,
// unique_ptr's, a helper that takes a reference) or comes back from one, the function is inlined and
// all is looked at again, until nothing changes. A function that calls itself cannot be inlined away:
// it gets a twin whose parameter is the address of a slot, for the callers that hand one over.
#include "instrumentation.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <set>

namespace obase::passes {

bool slots::in_type(llvm::Type* type) const {
    if (auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
        return in_type(array->getElementType());
    auto* record = llvm::dyn_cast<llvm::StructType>(type);
    if (record == nullptr) return false;
    if (types.contains(record)) return true;
    for (llvm::Type* element : record->elements())
        if (in_type(element)) return true;
    return false;
}

namespace {

constexpr unsigned most_rounds = 64; // deeper calls of one another than any library has

using parameter_numbers = std::set<unsigned>;

class finder {
  public:
    finder(llvm::Module& module, llvm::FunctionAnalysisManager& analyses, marks& said,
           problems& errors)
        : module_(module), analyses_(analyses), said_(said), errors_(errors) {}

    slots find() {
        annotate_variables(said_);
        for (const auto& [variable, elements] : said_.variables)
            if (llvm::any_of(variable->users(), [](const llvm::User* user) {
                    return !llvm::isa<llvm::Instruction>(user);
                }))
                errors_.refuse("the address of the marked variable " + variable->getName() +
                               " is kept in another one; name the variable where it is used");
        bool any = false;
        for (llvm::Function& f : module_)
            for (llvm::Instruction& i : llvm::instructions(f)) any = any || is_field_annotation(i);
        if (!any) return {};
        for (llvm::Function& f : module_)
            if (!f.isDeclaration()) simplify(f);
        look();
        for (unsigned round = 0; round < most_rounds; ++round) {
            if (!inline_what_is_needed() && !inline_what_allocates()) break;
            look();
        }
        report();
        return std::move(found_);
    }

  private:
    // Variables that are only loaded and stored become values; clang -O0 keeps all in memory.
    void simplify(llvm::Function& f) {
        analyses_.invalidate(f, llvm::PreservedAnalyses::none());
        llvm::SROAPass(llvm::SROAOptions::PreserveCFG).run(f, analyses_);
        analyses_.invalidate(f, llvm::PreservedAnalyses::none());
    }

    void look() {
        found_ = {};
        wanted_.clear();
        assigned_.clear();
        printed_.clear();
        kept_.clear();
        kinds_.clear();
        not_elements_.clear();
        unknown_.clear();
        recursion_.clear();
        for_twins_.clear();
        returning_.clear();
        work_.clear();
        for (llvm::Function& f : module_)
            for (llvm::Instruction& i : llvm::instructions(f))
                if (is_field_annotation(i) || is_elements_annotation(i)) {
                    auto* call = llvm::cast<llvm::CallInst>(&i);
                    found_.annotations.insert(call);
                    if (is_field_annotation(i)) note_type(*call);
                    add(call, is_elements_annotation(i) ? unsigned{has_array} : 0);
                }
        for (const auto& [twin, parameters] : twins_)
            for (const unsigned number : parameters) add(twin->getArg(number));
        while (!work_.empty()) {
            llvm::Value* address = work_.pop_back_val();
            for (const llvm::Use& u : address->uses()) follow(u);
        }
        for (llvm::StoreInst* store : kept_) kept(*store);
        for (llvm::Function* f : returning_) {
            const bool all_seen = for_each_call(*f, [this](llvm::CallBase& call) {
                if (!want(call))
                    unknown(call, "a recursive function returns a reference to a marked field; "
                                  "return what it holds");
            });
            if (!all_seen || !f->isDiscardableIfUnused())
                unknown_.push_back({&f->getEntryBlock().front(),
                                    "a function that other translation units can call returns the "
                                    "address of a marked field; make it static or inline, or "
                                    "return what the field holds"});
        }
    }

    // The object that the annotated address is part of.
    void note_type(llvm::CallInst& annotation) {
        llvm::Value* address = annotation.getArgOperand(0);
        if (auto* field = llvm::dyn_cast<llvm::GEPOperator>(address))
            if (auto* record = llvm::dyn_cast<llvm::StructType>(field->getSourceElementType()))
                found_.types.insert(record);
        llvm::Value* object = llvm::getUnderlyingObject(address, 0);
        if (auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object))
            found_.variables.insert(variable);
        else if (auto* parameter = llvm::dyn_cast<llvm::Argument>(object);
                 parameter != nullptr && parameter->getArgNo() == 0)
            found_.members.insert(parameter->getParent());
    }

    // Of the address of a slot: what the slot holds is an array of slots; the address is that of such an
    // array.
    enum : unsigned { has_array = 1, is_array = 2 };

    void add(llvm::Value* address, unsigned kind = 0) {
        unsigned& known = kinds_[address];
        const bool more = (known | kind) != known;
        known |= kind;
        if (found_.addresses.insert(address).second || more) work_.push_back(address);
    }

    // What is stored where an array of slots belongs: its elements are slots from its beginning on.
    void holds_elements(llvm::Value& value, llvm::Instruction& where) {
        if (llvm::isa<llvm::Constant>(value) || found_.has(&value)) return;
        if (auto* call = llvm::dyn_cast<llvm::CallBase>(&value)) {
            if (llvm::isa<llvm::IntrinsicInst>(call)) return;
            const llvm::Function* callee = callee_of(*call);
            if (!is_memory_call(*call) && !is_maker(*call) &&
                !(callee != nullptr &&
                  said_.makers.contains(const_cast<llvm::Function*>(callee))) &&
                !want(*call))
                unknown(where, array_from_elsewhere);
            add(call, is_array);
        } else if (auto* either = llvm::dyn_cast<llvm::PHINode>(&value)) {
            add(either, is_array);
            for (llvm::Value* one : either->incoming_values()) holds_elements(*one, where);
        } else if (auto* choice = llvm::dyn_cast<llvm::SelectInst>(&value)) {
            add(choice, is_array);
            holds_elements(*choice->getTrueValue(), where);
            holds_elements(*choice->getFalseValue(), where);
        } else {
            not_elements_.push_back({&value, &where});
        }
    }

    void unknown(llvm::Instruction& where, llvm::StringRef what) {
        unknown_.push_back({&where, what.str()});
    }

    void follow(const llvm::Use& u) {
        auto* user = llvm::dyn_cast<llvm::Instruction>(u.getUser());
        if (user == nullptr) return; // annotations of instructions only: no constants
        const unsigned kind = kinds_.lookup(u.get());
        switch (user->getOpcode()) {
        case llvm::Instruction::Load:
            access(*user, user->getType(), llvm::cast<llvm::LoadInst>(user)->getAlign());
            if ((kind & has_array) != 0) add(user, is_array);
            return;
        case llvm::Instruction::Store: {
            auto* store = llvm::cast<llvm::StoreInst>(user);
            if (u.getOperandNo() == llvm::StoreInst::getPointerOperandIndex()) {
                access(*user, store->getValueOperand()->getType(), store->getAlign());
                if ((kind & has_array) != 0) holds_elements(*store->getValueOperand(), *store);
            } else {
                kept_.insert(store);
            }
            return;
        }
        case llvm::Instruction::AtomicRMW: {
            auto* rmw = llvm::cast<llvm::AtomicRMWInst>(user);
            if (u.getOperandNo() != llvm::AtomicRMWInst::getPointerOperandIndex())
                unknown(*user, keeps_address);
            else if (rmw->getOperation() != llvm::AtomicRMWInst::Xchg)
                unknown(*user, "arithmetic on a marked field; only load, store, exchange and "
                               "compare-exchange work on it");
            else
                access(*user, rmw->getType(), rmw->getAlign());
            return;
        }
        case llvm::Instruction::AtomicCmpXchg: {
            auto* exchange = llvm::cast<llvm::AtomicCmpXchgInst>(user);
            if (u.getOperandNo() != llvm::AtomicCmpXchgInst::getPointerOperandIndex())
                unknown(*user, keeps_address);
            else
                access(*user, exchange->getNewValOperand()->getType(), exchange->getAlign());
            return;
        }
        case llvm::Instruction::GetElementPtr:
            add(user, kind & has_array);
            return;
        case llvm::Instruction::PHI:
        case llvm::Instruction::Select:
        case llvm::Instruction::Freeze:
        case llvm::Instruction::BitCast:
            add(user, kind);
            return;
        case llvm::Instruction::ICmp:
            return;
        case llvm::Instruction::PtrToInt:
            if (!is_sanitizer_check(*user)) not_understood(*user);
            return;
        case llvm::Instruction::Ret:
            returning_.insert(user->getFunction());
            return;
        case llvm::Instruction::Call:
        case llvm::Instruction::Invoke:
            passed(llvm::cast<llvm::CallBase>(*user), u);
            return;
        default:
            not_understood(*user);
        }
    }

    void not_understood(llvm::Instruction& use) {
        unknown(use, "this use of a marked field's address is not understood; access the field by "
                     "its name");
    }

    void access(llvm::Instruction& i, llvm::Type* type, llvm::Align alignment) {
        const llvm::DataLayout& layout = module_.getDataLayout();
        if (!(type->isPointerTy() || type->isIntegerTy(64)) || layout.getTypeStoreSize(type) != 8) {
            unknown(i, "a marked field is accessed as something else than a pointer; mark "
                       "fields that are pointers");
        } else if (alignment < llvm::Align(8)) {
            unknown(i, "a marked field is not aligned; do not pack structs with marked fields");
        } else {
            found_.accesses.insert(&i);
        }
    }

    // The address of a field is stored. In a variable that only functions see which can be inlined,
    // it comes out again when they are.
    void kept(llvm::StoreInst& store) {
        if ((kinds_.lookup(store.getPointerOperand()) & has_array) != 0) return;
        const llvm::Value* object = llvm::getUnderlyingObject(store.getPointerOperand(), 0);
        const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object);
        if (variable == nullptr || !want_users(*variable)) unknown(store, keeps_address);
    }

    bool want_users(const llvm::Value& variable) {
        bool any = false;
        llvm::SmallVector<const llvm::Value*, 8> addresses{&variable};
        llvm::DenseSet<const llvm::Value*> seen{&variable};
        for (std::size_t i = 0; i < addresses.size(); ++i)
            for (const llvm::User* user : addresses[i]->users()) {
                if (llvm::isa<llvm::GetElementPtrInst, llvm::BitCastInst, llvm::PHINode,
                              llvm::SelectInst>(user)) {
                    if (seen.insert(user).second) addresses.push_back(user);
                } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(user)) {
                    if (llvm::isa<llvm::IntrinsicInst>(call)) continue;
                    any = want(const_cast<llvm::CallBase&>(*call)) || any;
                } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
                           store != nullptr && store->getValueOperand() == addresses[i]) {
                    // By reference to a reference: of the next variable the same.
                    const llvm::Value* next =
                        llvm::getUnderlyingObject(store->getPointerOperand(), 0);
                    if (llvm::isa<llvm::AllocaInst>(next) && seen.insert(next).second)
                        addresses.push_back(next);
                }
            }
        return any;
    }

    void passed(llvm::CallBase& call, const llvm::Use& u) {
        const unsigned kind = kinds_.lookup(u.get());
        if (auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&call)) {
            passed_to_intrinsic(*intrinsic, kind);
            return;
        }
        if ((kind & is_array) != 0 && is_memory_call(call)) {
            if (reallocates(call)) add(&call, is_array);
            return;
        }
        if (prints_into_argument(call) && call.getArgOperandNo(&u) == 0) {
            printed_.insert(&call);
            return;
        }
        if (want(call)) return;
        llvm::Function* callee = callee_of(call);
        if (callee != nullptr && !callee->isDeclaration() && call.isArgOperand(&u) &&
            call.getArgOperandNo(&u) < callee->arg_size()) {
            const unsigned number = call.getArgOperandNo(&u);
            const auto twin = twins_.find(callee);
            if (twin != twins_.end() && twin->second.contains(number)) return;
            if (calls_itself(*callee) && !callee->isInterposable()) {
                for_twins_[&call].insert(number);
                return;
            }
        }
        unknown(call, "the address of a marked field is passed to code that is not compiled here; "
                      "pass what the field holds");
    }

    void passed_to_intrinsic(llvm::IntrinsicInst& call, unsigned kind) {
        switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::lifetime_start:
        case llvm::Intrinsic::lifetime_end:
        case llvm::Intrinsic::assume:
        case llvm::Intrinsic::objectsize:
        case llvm::Intrinsic::invariant_start:
        case llvm::Intrinsic::prefetch:
            return;
        case llvm::Intrinsic::ptr_annotation:
        case llvm::Intrinsic::launder_invariant_group:
        case llvm::Intrinsic::strip_invariant_group:
            add(&call, kind);
            return;
        case llvm::Intrinsic::memset: {
            // Null pointers: as good as stores of null.
            const auto* value = llvm::dyn_cast<llvm::Constant>(call.getArgOperand(1));
            if (value != nullptr && value->isNullValue()) return;
            break;
        }
        case llvm::Intrinsic::memcpy:
        case llvm::Intrinsic::memcpy_inline:
        case llvm::Intrinsic::memmove: {
            // One pointer: the constructors of std::unique_ptr that move.
            const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(2));
            if (bytes == nullptr || bytes->getZExtValue() != sizeof(void*)) break;
            assigned_.insert(&call);
            return;
        }
        default:
            break;
        }
        unknown(call, "marked fields are copied or filled as bytes; assign them one by one");
    }

    // Queues the call for inlining. False if that cannot be.
    bool want(llvm::CallBase& call) {
        if (!can_inline(call)) return false;
        wanted_.insert(&call);
        return true;
    }
    bool can_inline(llvm::CallBase& call) {
        llvm::Function* callee = callee_of(call);
        return callee != nullptr && !callee->isDeclaration() && !callee->isInterposable() &&
               callee != call.getFunction() && !calls_itself(*callee) && !callee->isVarArg() &&
               !llvm::isa<llvm::CallBrInst>(call);
    }

    // Directly or through others.
    bool calls_itself(llvm::Function& f) {
        const auto [known, fresh] = recursion_.try_emplace(&f, false);
        if (fresh) known->second = finds_itself(f);
        return known->second;
    }
    static bool finds_itself(llvm::Function& f) {
        llvm::SmallVector<llvm::Function*, 16> reached{&f};
        llvm::DenseSet<llvm::Function*> seen;
        while (!reached.empty())
            for (llvm::Instruction& i : llvm::instructions(*reached.pop_back_val())) {
                const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
                llvm::Function* next = call != nullptr ? callee_of(*call) : nullptr;
                if (next == &f) return true;
                if (next != nullptr && seen.insert(next).second) reached.push_back(next);
            }
        return false;
    }

    // Copies of one pointer as bytes become loads and stores.
    void assign_what_is_copied() {
        for (llvm::IntrinsicInst* copy : assigned_) {
            llvm::IRBuilder<> here(copy);
            auto* transfer = llvm::cast<llvm::MemTransferInst>(copy);
            llvm::Value* word = here.CreateAlignedLoad(here.getPtrTy(), transfer->getRawSource(),
                                                       llvm::Align(8), transfer->isVolatile());
            here.CreateAlignedStore(word, transfer->getRawDest(), llvm::Align(8),
                                    transfer->isVolatile());
            changed_.insert(copy->getFunction());
            copy->eraseFromParent();
        }
        assigned_.clear();
    }

    // asprintf(&slot, ...) prints into a variable, whose value the slot gets.
    void print_into_variables() {
        for (llvm::CallBase* call : printed_) {
            if (llvm::isa<llvm::InvokeInst>(call)) {
                unknown(*call, "asprintf into a marked field within try; print into a variable");
                continue;
            }
            llvm::Function& f = *call->getFunction();
            llvm::IRBuilder<> top(&f.getEntryBlock(), f.getEntryBlock().begin());
            llvm::AllocaInst* variable = top.CreateAlloca(top.getPtrTy());
            llvm::Value* slot = call->getArgOperand(0);
            llvm::IRBuilder<> before(call);
            before.CreateStore(llvm::ConstantPointerNull::get(before.getPtrTy()), variable);
            call->setArgOperand(0, variable);
            llvm::IRBuilder<> after(call->getNextNode());
            after.SetCurrentDebugLocation(call->getDebugLoc());
            after.CreateStore(after.CreateLoad(after.getPtrTy(), variable), slot);
            changed_.insert(&f);
        }
        printed_.clear();
    }

    bool inline_what_is_needed() {
        changed_.clear();
        assign_what_is_copied();
        print_into_variables();
        llvm::SetVector<llvm::Function*> unneeded;
        wanted_ = inline_all(wanted_, unneeded);
        for (const auto& [call, numbers] : for_twins_) {
            llvm::Function* callee = callee_of(*call);
            changed_.insert(call->getFunction());
            unneeded.insert(callee);
            call->setCalledOperand(twin_of(*callee, numbers));
        }
        return clean_up(unneeded);
    }

    // Functions of libraries that allocate what a slot gets (std::make_unique): what they allocate is
    // to be managed here, and not for their other callers.
    bool inline_what_allocates() {
        changed_.clear();
        llvm::SetVector<llvm::CallBase*> calls;
        for (llvm::CallBase* call : find_allocations(module_, found_, said_).hiding)
            if (can_inline(*call)) calls.insert(call);
        llvm::SetVector<llvm::Function*> unneeded;
        inline_all(calls, unneeded);
        return clean_up(unneeded);
    }

    // Returns the calls that could not be inlined.
    llvm::SetVector<llvm::CallBase*> inline_all(const llvm::SetVector<llvm::CallBase*>& calls,
                                                llvm::SetVector<llvm::Function*>& inlined) {
        llvm::SetVector<llvm::CallBase*> refused;
        for (llvm::CallBase* call : calls) {
            llvm::Function* caller = call->getFunction();
            llvm::Function* callee = callee_of(*call);
            if (callee != call->getCalledOperand()) call->setCalledOperand(callee); // an alias
            llvm::InlineFunctionInfo how;
            if (llvm::InlineFunction(*call, how).isSuccess()) {
                changed_.insert(caller);
                inlined.insert(callee);
            } else {
                refused.insert(call);
            }
        }
        return refused;
    }

    bool clean_up(const llvm::SetVector<llvm::Function*>& unneeded) {
        for (llvm::Function* f : unneeded) drop_if_unused(*f);
        for (llvm::Function* f : changed_)
            if (!f->isDeclaration()) simplify(*f);
        return !changed_.empty();
    }

    // A copy of the function that takes addresses of slots where `numbers` says.
    llvm::Function* twin_of(llvm::Function& f, parameter_numbers numbers) {
        llvm::Function* original = &f;
        if (const auto known = twins_.find(&f); known != twins_.end()) {
            original = originals_.lookup(&f);
            numbers.insert(known->second.begin(), known->second.end());
        }
        for (const auto& [twin, parameters] : twins_)
            if (originals_.lookup(twin) == original && parameters == numbers) return twin;
        llvm::ValueToValueMapTy values;
        llvm::Function* twin = llvm::CloneFunction(original, values);
        twin->setName(original->getName() + ".slots");
        twin->setComdat(nullptr);
        twin->setVisibility(llvm::GlobalValue::DefaultVisibility);
        twin->setLinkage(llvm::GlobalValue::InternalLinkage);
        originals_[twin] = original;
        twins_.insert({twin, numbers});
        said_.roles[twin] = said_.of(*original);
        return twin;
    }

    // A copy in another translation unit is that unit's own. What is left here would have to be
    // converted without its callers.
    static void drop_if_unused(llvm::Function& f) {
        f.removeDeadConstantUsers();
        if (!f.isDiscardableIfUnused() || !f.use_empty()) return;
        f.deleteBody();
        f.setComdat(nullptr);
    }

    // The addresses that could not be resolved.
    void report() {
        for (const auto& [value, where] : not_elements_)
            if (!found_.has(value)) errors_.refuse(*where, array_from_elsewhere);
        for (const auto& [where, what] : unknown_) errors_.refuse(*where, what);
        for (const llvm::CallBase* call : wanted_)
            errors_.refuse(*call, "the function that gets the address of a marked field cannot be "
                                  "inlined here; pass what the field holds");
        for (const llvm::Value* address : found_.addresses)
            if (const auto* either = llvm::dyn_cast<llvm::PHINode>(address)) {
                for (const llvm::Value* one : either->incoming_values())
                    if (!is_slot_or_nothing(one)) errors_.refuse(*either, mixed);
            } else if (const auto* choice = llvm::dyn_cast<llvm::SelectInst>(address)) {
                if (!is_slot_or_nothing(choice->getTrueValue()) ||
                    !is_slot_or_nothing(choice->getFalseValue()))
                    errors_.refuse(*choice, mixed);
            }
    }
    bool is_slot_or_nothing(const llvm::Value* v) const {
        return found_.has(v) || llvm::isa<llvm::ConstantPointerNull, llvm::UndefValue>(v);
    }

    static constexpr llvm::StringLiteral keeps_address =
        "the address of a marked field is kept; keep a pointer to the object that holds it, within "
        "the operation";
    static constexpr llvm::StringLiteral array_from_elsewhere =
        "the elements of this array of pointers are slots, for its field is marked, but it comes "
        "from "
        "where they are none; allocate the array in the function that stores it";
    static constexpr llvm::StringLiteral mixed =
        "this may be the address of a marked field or of something else; mark both (of an element "
        "of "
        "an array of pointers, the field that holds the array), or use two variables";

    struct question {
        llvm::Instruction* where;
        std::string what;
    };

    llvm::Module& module_;
    llvm::FunctionAnalysisManager& analyses_;
    marks& said_;
    problems& errors_;
    slots found_;
    llvm::SmallVector<llvm::Value*, 64> work_;
    llvm::SetVector<llvm::CallBase*> wanted_;
    llvm::SetVector<llvm::IntrinsicInst*> assigned_;
    llvm::SetVector<llvm::CallBase*> printed_;
    llvm::SetVector<llvm::StoreInst*> kept_;
    llvm::DenseMap<const llvm::Value*, unsigned> kinds_;
    // What is stored where an array of slots belongs, and by which instruction.
    llvm::SmallVector<std::pair<llvm::Value*, llvm::Instruction*>, 4> not_elements_;
    llvm::SetVector<llvm::Function*> returning_;
    llvm::SetVector<llvm::Function*> changed_;
    llvm::MapVector<llvm::CallBase*, parameter_numbers> for_twins_;
    llvm::MapVector<llvm::Function*, parameter_numbers> twins_;
    llvm::DenseMap<llvm::Function*, llvm::Function*> originals_;
    llvm::DenseMap<llvm::Function*, bool> recursion_;
    llvm::SmallVector<question, 8> unknown_;
};

} // namespace

bool is_sanitizer_check(const llvm::Instruction& i) {
    return llvm::isa<llvm::PtrToIntInst>(i) && i.hasMetadata(llvm::LLVMContext::MD_nosanitize);
}

slots find_slots(llvm::Module& module, llvm::FunctionAnalysisManager& analyses, marks& said,
                 problems& errors) {
    return finder(module, analyses, said, errors).find();
}

} // namespace obase::passes
