// SPDX-License-Identifier: MIT
//
// Memory: which allocations end in marked fields and so have to be managed, and every call that
// frees, because it may be given such memory, or memory with slots in it.
//
// An address is followed backwards from the stores into slots: through phis, arguments of functions
// that are called in operations only, results of such, and variables on their way. It is not followed
// out of an operation: what a caller hands to one may be kept by the caller, which has no scope, so
// it stays where it is. (A constructor may be an operation that others call.)
// A function that the marks name as one that allocates is such an origin for its callers, wherever it
// is defined.
#include "instrumentation.hpp"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <climits>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <utility>

namespace obase::passes {

namespace {

enum class memory_call {
    none,
    malloc_like,       // (bytes)
    calloc_like,       // (count, bytes)
    aligned_like,      // (alignment, bytes)
    new_like,          // (bytes)
    new_nothrow,       // (bytes, tag)
    new_aligned,       // (bytes, alignment)
    new_array,         // (bytes)
    duplicates,        // strdup: (text)
    duplicates_some,   // strndup: (text, most)
    reallocates,       // (address, bytes)
    reallocates_array, // (address, count, bytes)
    prints,            // asprintf: (where its address goes, ...), how long it is
    unmaps,            // (address, bytes)
    asks_size,         // (address)
    frees,             // (address)
    deletes,           // (address), (address, bytes), each with an alignment or a tag
    deletes_array,
};

// Itanium names, with the size_t of x86-64.
memory_call kind_of(const llvm::CallBase& call) {
    const llvm::Function* callee = callee_of(call);
    if (callee == nullptr || callee->isIntrinsic() || callee->hasLocalLinkage())
        return memory_call::none;
    return llvm::StringSwitch<memory_call>(callee->getName())
        .Case("malloc", memory_call::malloc_like)
        .Case("calloc", memory_call::calloc_like)
        .Case("aligned_alloc", memory_call::aligned_like)
        .Cases("strdup", "__strdup", memory_call::duplicates)
        .Cases("strndup", "__strndup", memory_call::duplicates_some)
        .Case("realloc", memory_call::reallocates)
        .Case("reallocarray", memory_call::reallocates_array)
        .Cases("asprintf", "__asprintf_chk", "vasprintf", "__vasprintf_chk", memory_call::prints)
        .Case("munmap", memory_call::unmaps)
        .Case("malloc_usable_size", memory_call::asks_size)
        .Cases("free", "cfree", memory_call::frees)
        .Case("_Znwm", memory_call::new_like)
        .Case("_ZnwmRKSt9nothrow_t", memory_call::new_nothrow)
        .Case("_ZnwmSt11align_val_t", memory_call::new_aligned)
        .Case("_Znam", memory_call::new_array)
        .Cases("_ZdlPv", "_ZdlPvm", "_ZdlPvRKSt9nothrow_t", memory_call::deletes)
        .Cases("_ZdlPvSt11align_val_t", "_ZdlPvmSt11align_val_t", memory_call::deletes)
        .Cases("_ZdaPv", "_ZdaPvm", "_ZdaPvRKSt9nothrow_t", memory_call::deletes_array)
        .Cases("_ZdaPvSt11align_val_t", "_ZdaPvmSt11align_val_t", memory_call::deletes_array)
        .Default(memory_call::none);
}

// Puts another call in the place of one, with the same exits.
void replace_call(llvm::CallBase& call, llvm::FunctionCallee by,
                  llvm::ArrayRef<llvm::Value*> arguments) {
    llvm::CallBase* fresh = nullptr;
    if (auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(&call))
        fresh = llvm::InvokeInst::Create(by, invoke->getNormalDest(), invoke->getUnwindDest(),
                                         arguments, "", invoke->getIterator());
    else
        fresh = llvm::CallInst::Create(by, arguments, "", call.getIterator());
    fresh->setDebugLoc(call.getDebugLoc());
    if (!call.getType()->isVoidTy()) {
        fresh->takeName(&call);
        call.replaceAllUsesWith(fresh);
    }
    call.eraseFromParent();
}

// What is left of these are their addresses: in calls through pointers, in tables of hooks. (Those of free,
// realloc and malloc_usable_size are converted where they are called through.)
void replace_addresses(llvm::Module& module) {
    static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> names[] = {
        {"reallocarray", "reallocarray"}, {"munmap", "munmap"}};
    for (const auto& [name, ours] : names) {
        llvm::Function* f = module.getFunction(name);
        if (f == nullptr || !f->isDeclaration() || f->use_empty()) continue;
        auto* replacement = llvm::cast<llvm::Function>(
            module.getOrInsertFunction(runtime_name(module, ours), f->getFunctionType())
                .getCallee());
        f->replaceAllUsesWith(replacement);
    }
}

// In the program, beside the function itself; a name that no source can have.
std::string managing_twin_of(const llvm::Function& f) { return (f.getName() + ".obase").str(); }

class tracer {
  public:
    tracer(const slots& fields, const marks& said, const llvm::DataLayout& layout)
        : fields_(fields), said_(said), layout_(layout) {}

    allocations trace() {
        for (llvm::Instruction* access : fields_.accesses) {
            if (auto* store = llvm::dyn_cast<llvm::StoreInst>(access))
                add(store->getValueOperand());
            else if (auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(access))
                add(rmw->getValOperand());
            else if (auto* exchange = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(access))
                add(exchange->getNewValOperand());
        }
        for (const llvm::Function* twin : said_.managing_twins) add_results(*twin);
        while (!work_.empty()) step(*work_.pop_back_val());
        return std::move(found_);
    }

  private:
    void add(llvm::Value* v) {
        if (!llvm::isa<llvm::Constant>(v) && seen_.insert(v).second) work_.push_back(v);
    }

    void add_results(const llvm::Function& f) {
        for (const llvm::Instruction& i : llvm::instructions(f))
            if (const auto* result = llvm::dyn_cast<llvm::ReturnInst>(&i))
                if (result->getReturnValue() != nullptr) add(result->getReturnValue());
    }

    void step(llvm::Value& v) {
        if (auto* parameter = llvm::dyn_cast<llvm::Argument>(&v)) {
            for_each_handed_over(*parameter, [this](llvm::Value& handed) { add(&handed); });
        } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&v)) {
            if (is_allocation(*call)) {
                found_.found.insert(call);
                return;
            }
            if (reallocates(*call)) {
                // Of null it allocates; and what was managed stays so.
                found_.found.insert(call);
                add(call->getArgOperand(0));
                return;
            }
            llvm::Function* callee = callee_of(*call);
            if (is_maker(*call) || (callee != nullptr && said_.makers.contains(callee))) {
                found_.found.insert(call);
                return;
            }
            if (callee != nullptr && gives_argument(*callee) < call->arg_size()) {
                add(call->getArgOperand(gives_argument(*callee))); // return strcpy(copy, text);
                return;
            }
            if (callee == nullptr || callee->isDeclaration()) {
                found_.others.insert(call);
                return;
            }
            if (!is_called_inside_only(*callee, said_)) {
                hides(*call, *callee);
                return;
            }
            // Callers that keep what it makes elsewhere get what malloc makes: it is inlined where the
            // result ends in a slot.
            if (only_makes(*callee)) found_.hiding.insert(call);
            add_results(*callee);
        } else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&v)) {
            from_variable(*load);
        } else if (auto* member = llvm::dyn_cast<llvm::GetElementPtrInst>(&v);
                   member != nullptr && is_first_member(*member)) {
            add(member->getPointerOperand()); // of the first member, which is the object's own
        } else if (llvm::isa<llvm::PHINode, llvm::SelectInst, llvm::FreezeInst, llvm::CastInst,
                             llvm::ExtractValueInst, llvm::InsertValueInst>(&v)) {
            for (llvm::Value* operand : llvm::cast<llvm::Instruction>(v).operands()) add(operand);
        }
    }

    // Of the first member of the first member...; an array's first element is one of several objects.
    static bool is_first_member(const llvm::GetElementPtrInst& address) {
        if (!address.hasAllZeroIndices()) return false;
        for (auto at = std::next(llvm::gep_type_begin(address)); at != llvm::gep_type_end(address);
             ++at)
            if (!at.isStruct()) return false;
        return true;
    }

    // The argument that a function of the C library returns, or more than there can be.
    static unsigned gives_argument(const llvm::Function& f) {
        const known_function known = look_up(f);
        const bool same = f.isDeclaration() && known.result == known_function::gives::argument &&
                          f.getName() != "__dynamic_cast"; // maybe a base inside of the object
        return same ? known.of : UINT_MAX;
    }

    // True if the function returns what it has allocated, or what functions that it calls have, and has
    // nothing to do with slots.
    bool only_makes(const llvm::Function& f) const {
        bool makes = false;
        for (const llvm::Instruction& i : llvm::instructions(f)) {
            if (fields_.is_access(&i)) return false;
            const auto* result = llvm::dyn_cast<llvm::ReturnInst>(&i);
            if (result == nullptr || result->getReturnValue() == nullptr) continue;
            const auto* call = llvm::dyn_cast<llvm::CallBase>(
                llvm::getUnderlyingObject(result->getReturnValue(), 0));
            makes = makes || call != nullptr ||
                    llvm::isa<llvm::PHINode, llvm::LoadInst>(result->getReturnValue());
        }
        return makes;
    }

    // What operations hand to the function: they have a scope in which the address is good. Others may
    // keep it.
    void for_each_handed_over(llvm::Argument& parameter,
                              llvm::function_ref<void(llvm::Value&)> use) {
        llvm::Function& f = *parameter.getParent();
        const bool operation = said_.of(f) == role::entry;
        if (!operation && !is_called_inside_only(f, said_)) return;
        for_each_call(f, [&](llvm::CallBase& call) {
            if (parameter.getArgNo() >= call.arg_size()) return;
            llvm::Function& caller = *call.getFunction();
            if (!operation || in_operation(caller))
                use(*call.getArgOperand(parameter.getArgNo()));
            else if (said_.of(caller) == role::unknown && caller.isDiscardableIfUnused())
                // std::make_unique, which hands on what an operation gives it.
                for_each_call(caller, [&](llvm::CallBase& outer) {
                    if (in_operation(*outer.getFunction())) found_.hiding.insert(&outer);
                });
        });
    }
    bool in_operation(const llvm::Function& f) const {
        return said_.of(f) == role::entry || is_called_inside_only(f, said_);
    }

    // A variable that could not become a value, because its address is taken.
    void from_variable(llvm::LoadInst& load) {
        if (fields_.is_access(&load)) return; // what a slot holds is managed already, or never is
        const place from = place_of(*load.getPointerOperand());
        if (const auto* parameter = llvm::dyn_cast<llvm::Argument>(from.variable)) {
            // Of a library's function, as of a smart pointer, for a type in an anonymous namespace.
            const llvm::Function& f = *parameter->getParent();
            for_each_call(f, [&](llvm::CallBase& call) { hides(call, f); });
        }
        if (auto* call = llvm::dyn_cast<llvm::CallBase>(from.variable)) {
            // Returns where in a variable it is, as a smart pointer does.
            llvm::Function* callee = callee_of(*call);
            if (callee != nullptr && !callee->isDeclaration()) hides(*call, *callee);
            return;
        }
        stored_in(from);
    }

    // Bytes of a variable, which may be a parameter's.
    struct place {
        llvm::Value* variable;
        std::int64_t offset; // or `somewhere`
    };
    static constexpr std::int64_t somewhere = INT64_MIN; // in an array
    place place_of(llvm::Value& address) const {
        std::int64_t offset = 0;
        llvm::Value* variable = llvm::GetPointerBaseWithConstantOffset(&address, offset, layout_);
        llvm::Value* whole = llvm::getUnderlyingObject(variable, 0);
        return {whole, whole == variable ? offset : somewhere};
    }
    // The place that is as far behind `from` as `distance`.
    static place behind(place from, std::int64_t distance) {
        if (from.offset == somewhere || distance == somewhere) return {from.variable, somewhere};
        return {from.variable, from.offset + distance};
    }

    // Whatever may have been stored into a variable, here or where its address is handed to: an owner
    // goes through several hands before a slot takes over what it has.
    void stored_in(place sought) {
        auto* parameter = llvm::dyn_cast<llvm::Argument>(sought.variable);
        if (parameter == nullptr && !llvm::isa<llvm::AllocaInst>(sought.variable)) return;
        if (!places_.insert({sought.variable, sought.offset}).second) return;
        if (parameter != nullptr)
            for_each_handed_over(*parameter, [&](llvm::Value& handed) {
                stored_in(behind(place_of(handed), sought.offset));
            });
        llvm::SmallVector<llvm::Value*, 8> addresses{sought.variable};
        llvm::DenseSet<llvm::Value*> known{sought.variable};
        for (std::size_t i = 0; i < addresses.size(); ++i)
            for (llvm::Use& u : addresses[i]->uses()) {
                llvm::User* user = u.getUser();
                const place here = place_of(*addresses[i]);
                if (llvm::isa<llvm::GetElementPtrInst, llvm::BitCastInst>(user)) {
                    if (known.insert(user).second) addresses.push_back(user);
                } else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(user);
                           store != nullptr && store->getPointerOperand() == addresses[i]) {
                    if (here.offset == sought.offset || here.offset == somewhere ||
                        sought.offset == somewhere)
                        add(store->getValueOperand());
                } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(user);
                           call != nullptr && call->isArgOperand(&u)) {
                    handed_on(*call, call->getArgOperandNo(&u), sought, here);
                }
            }
    }

    // A part of the variable is handed to a function, which may store into it.
    void handed_on(llvm::CallBase& call, unsigned number, place sought, place part) {
        llvm::Function* callee = callee_of(call);
        if (prints_into_argument(call) && number == 0) {
            if (part.offset == sought.offset) found_.printed.insert(&call);
            return;
        }
        if (callee == nullptr || callee->isDeclaration() || number >= callee->arg_size()) return;
        const bool known = part.offset != somewhere && sought.offset != somewhere;
        // clang says how large the object is that a method or a reference parameter is about.
        const auto bytes = static_cast<std::int64_t>(callee->getParamDereferenceableBytes(number));
        if (known &&
            (sought.offset < part.offset || (bytes != 0 && sought.offset - part.offset >= bytes)))
            return;
        if (said_.of(*callee) == role::entry || is_called_inside_only(*callee, said_))
            stored_in({callee->getArg(number), known ? sought.offset - part.offset : somewhere});
        // A smart pointer's functions store through places that others of them return.
        hides(call, *callee);
    }

    void hides(llvm::CallBase& call, const llvm::Function& callee) {
        if (said_.of(callee) == role::unknown && callee.isDiscardableIfUnused())
            found_.hiding.insert(&call);
    }

    const slots& fields_;
    const marks& said_;
    const llvm::DataLayout& layout_;
    llvm::SmallVector<llvm::Value*, 32> work_;
    llvm::DenseSet<llvm::Value*> seen_;
    std::set<std::pair<llvm::Value*, std::int64_t>> places_; // that have been looked at
    allocations found_;
};

} // namespace

bool is_allocation(const llvm::CallBase& call) {
    switch (kind_of(call)) {
    case memory_call::malloc_like:
    case memory_call::calloc_like:
    case memory_call::aligned_like:
    case memory_call::new_like:
    case memory_call::new_nothrow:
    case memory_call::new_aligned:
    case memory_call::new_array:
    case memory_call::duplicates:
    case memory_call::duplicates_some:
        return true;
    default:
        return false;
    }
}

bool reallocates(const llvm::CallBase& call) {
    const memory_call kind = kind_of(call);
    return kind == memory_call::reallocates || kind == memory_call::reallocates_array;
}

bool prints_into_argument(const llvm::CallBase& call) {
    return kind_of(call) == memory_call::prints;
}

bool is_memory_call(const llvm::CallBase& call) {
    const memory_call kind = kind_of(call);
    return kind != memory_call::none && kind != memory_call::prints;
}

bool is_free(const llvm::CallBase& call) {
    switch (kind_of(call)) {
    case memory_call::frees:
    case memory_call::deletes:
    case memory_call::deletes_array:
        return true;
    default:
        return false;
    }
}

void add_managing_twins(marks& said) {
    for (llvm::Function* f : said.makers) {
        if (f->isDeclaration()) continue;
        llvm::ValueToValueMapTy values;
        llvm::Function* twin = llvm::CloneFunction(f, values);
        twin->setName(managing_twin_of(*f));
        twin->setComdat(nullptr);
        if (const role is = said.of(*f); is != role::unknown) said.roles[twin] = is;
        said.managing_twins.insert(twin);
    }
}

namespace {

// Functions that are made of those of the runtime, for the calls that it has none for. Each exists once
// in a module, if it is wanted.
class made_functions {
  public:
    explicit made_functions(llvm::Module& module)
        : module_(module), pointer_(llvm::PointerType::getUnqual(module.getContext())),
          size_(llvm::Type::getInt64Ty(module.getContext())),
          nothing_(llvm::Type::getVoidTy(module.getContext())) {}

    llvm::FunctionCallee runtime(llvm::StringRef name, llvm::Type* result,
                                 llvm::ArrayRef<llvm::Type*> parameters) {
        llvm::FunctionCallee f = module_.getOrInsertFunction(
            runtime_name(module_, name), llvm::FunctionType::get(result, parameters, false));
        auto* declared = llvm::cast<llvm::Function>(f.getCallee());
        const bool may_throw = name.starts_with("new") && !name.ends_with("nothrow");
        if (!may_throw) declared->setDoesNotThrow();
        return f;
    }

    // realloc(address, bytes), which allocates for a slot if the address is null.
    llvm::Function* realloc() {
        return make("obase.realloc", pointer_, {pointer_, size_}, [this](llvm::Function& f) {
            llvm::IRBuilder<> here(block(f));
            llvm::BasicBlock* fresh = block(f);
            llvm::BasicBlock* known = block(f);
            here.CreateCondBr(here.CreateIsNull(f.getArg(0)), fresh, known);
            here.SetInsertPoint(fresh);
            here.CreateRet(here.CreateCall(malloc(), {f.getArg(1)}));
            here.SetInsertPoint(known);
            here.CreateRet(here.CreateCall(runtime("realloc", pointer_, {pointer_, size_}),
                                           {f.getArg(0), f.getArg(1)}));
        });
    }
    // The text's copy, of `most` bytes without the last zero.
    llvm::Function* strndup() {
        return make("obase.strndup", pointer_, {pointer_, size_}, [this](llvm::Function& f) {
            llvm::IRBuilder<> here(block(f));
            llvm::BasicBlock* made = block(f);
            llvm::BasicBlock* done = block(f);
            llvm::Value* length =
                here.CreateCall(module_.getOrInsertFunction("strnlen", size_, pointer_, size_),
                                {f.getArg(0), f.getArg(1)});
            llvm::Value* copy = here.CreateCall(
                malloc(), {here.CreateAdd(length, llvm::ConstantInt::get(size_, 1))});
            here.CreateCondBr(here.CreateIsNull(copy), done, made);
            here.SetInsertPoint(made);
            here.CreateMemCpy(copy, {}, f.getArg(0), {}, length);
            here.CreateStore(here.getInt8(0), here.CreatePtrAdd(copy, length));
            here.CreateBr(done);
            here.SetInsertPoint(done);
            here.CreateRet(copy);
        });
    }
    // After asprintf: puts a managed copy in the place of what it has allocated, if there is memory.
    llvm::Function* adopt() {
        llvm::Type* number = llvm::Type::getInt32Ty(module_.getContext());
        return make("obase.adopt", nothing_, {pointer_, number}, [this, number](llvm::Function& f) {
            llvm::IRBuilder<> here(block(f));
            llvm::BasicBlock* printed = block(f);
            llvm::BasicBlock* made = block(f);
            llvm::BasicBlock* done = block(f);
            here.CreateCondBr(here.CreateICmpSGE(f.getArg(1), llvm::ConstantInt::get(number, 0)),
                              printed, done);
            here.SetInsertPoint(printed);
            llvm::Value* text = here.CreateLoad(pointer_, f.getArg(0));
            llvm::Value* bytes = here.CreateAdd(here.CreateSExt(f.getArg(1), size_),
                                                llvm::ConstantInt::get(size_, 1));
            llvm::Value* copy = here.CreateCall(malloc(), {bytes});
            here.CreateCondBr(here.CreateIsNull(copy), done, made);
            here.SetInsertPoint(made);
            here.CreateMemCpy(copy, {}, text, {}, bytes);
            here.CreateStore(copy, f.getArg(0));
            here.CreateCall(runtime("free", nothing_, {pointer_}), {text});
            here.CreateBr(done);
            here.SetInsertPoint(done);
            here.CreateRetVoid();
        });
    }
    // A call through a pointer, which may be to a function of the C library.
    void call_managing(llvm::CallBase& call) {
        llvm::IRBuilder<> here(&call);
        llvm::Value* called = call.getCalledOperand();
        const auto instead = [&](llvm::StringRef name, llvm::Value* by) {
            llvm::Value* known =
                module_.getOrInsertFunction(name, call.getFunctionType()).getCallee();
            called =
                here.CreateSelect(here.CreateICmpEQ(call.getCalledOperand(), known), by, called);
        };
        const llvm::FunctionType* type = call.getFunctionType();
        const auto is = [&](std::initializer_list<llvm::Type*> parameters) {
            return type->getReturnType() == pointer_ &&
                   type->params() == llvm::ArrayRef(parameters);
        };
        if (is({size_})) {
            instead("malloc", malloc().getCallee());
        } else if (is({size_, size_})) {
            instead("calloc", runtime("calloc", pointer_, {size_, size_}).getCallee());
        } else if (is({pointer_, size_})) {
            instead("realloc", realloc());
            // As initializers have it: convert_pointers_to_functions.
            instead(runtime_name(module_, "realloc"), realloc());
        }
        call.setCalledOperand(called);
    }
    // count * bytes, or as many as no allocation has.
    llvm::Value* product(llvm::IRBuilder<>& here, llvm::Value* count, llvm::Value* bytes) {
        llvm::Value* both =
            here.CreateBinaryIntrinsic(llvm::Intrinsic::umul_with_overflow, count, bytes);
        return here.CreateSelect(here.CreateExtractValue(both, 1),
                                 llvm::Constant::getAllOnesValue(size_),
                                 here.CreateExtractValue(both, 0));
    }

  private:
    llvm::FunctionCallee malloc() { return runtime("malloc", pointer_, {size_}); }
    llvm::BasicBlock* block(llvm::Function& f) {
        return llvm::BasicBlock::Create(module_.getContext(), "", &f);
    }
    llvm::Function* make(llvm::StringRef name, llvm::Type* result,
                         llvm::ArrayRef<llvm::Type*> parameters,
                         llvm::function_ref<void(llvm::Function&)> write) {
        if (llvm::Function* known = module_.getFunction(name)) return known;
        auto* f = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false),
                                         llvm::GlobalValue::InternalLinkage, name, module_);
        f->setDoesNotThrow();
        write(*f);
        return f;
    }

    llvm::Module& module_;
    llvm::Type* pointer_;
    llvm::Type* size_;
    llvm::Type* nothing_;
};

// A function that frees may be called through a pointer, by code that is not compiled here, too.
void convert_pointers_to_functions(llvm::Module& module, made_functions& made) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(module.getContext());
    llvm::Type* size = llvm::Type::getInt64Ty(module.getContext());
    const auto convert = [&](llvm::StringRef name, llvm::StringRef by, llvm::Type* result,
                             llvm::ArrayRef<llvm::Type*> parameters) {
        llvm::Function* f = module.getFunction(name);
        if (f == nullptr || !f->isDeclaration() || f->use_empty()) return;
        const auto is_pointer = [](const llvm::Use& u) {
            const auto* call = llvm::dyn_cast<llvm::CallBase>(u.getUser());
            return call == nullptr || !call->isCallee(&u);
        };
        if (llvm::none_of(f->uses(), is_pointer)) return;
        auto* instead =
            llvm::cast<llvm::Constant>(made.runtime(by, result, parameters).getCallee());
        f->replaceUsesWithIf(instead, [&](const llvm::Use& u) { return is_pointer(u); });
    };
    convert("free", "free", llvm::Type::getVoidTy(module.getContext()), {pointer});
    convert("realloc", "realloc", pointer, {pointer, size});
    convert("malloc_usable_size", "usable_size", size, {pointer});
}

} // namespace

allocations find_allocations(const llvm::Module& module, const slots& fields, const marks& said) {
    return tracer(fields, said, module.getDataLayout()).trace();
}

void convert_allocations(llvm::Module& module, const allocations& allocated) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(module.getContext());
    llvm::Type* size = llvm::Type::getInt64Ty(module.getContext());
    llvm::Type* nothing = llvm::Type::getVoidTy(module.getContext());
    made_functions made(module);
    const auto function = [&](llvm::StringRef name, llvm::Type* result,
                              llvm::ArrayRef<llvm::Type*> parameters) {
        return made.runtime(name, result, parameters);
    };
    convert_pointers_to_functions(module, made);
    for (llvm::CallBase* call : allocated.printed) {
        auto* next = call->getNextNode();
        if (auto* invoke = llvm::dyn_cast<llvm::InvokeInst>(call))
            next = &*invoke->getNormalDest()->getFirstInsertionPt();
        llvm::IRBuilder<> here(next);
        here.SetCurrentDebugLocation(call->getDebugLoc());
        here.CreateCall(made.adopt(), {call->getArgOperand(0), call});
    }
    for (llvm::CallBase* call : allocated.found) {
        if (reallocates(*call)) {
            llvm::IRBuilder<> here(call);
            llvm::Value* bytes = call->getArgOperand(1);
            if (call->arg_size() > 2) bytes = made.product(here, bytes, call->getArgOperand(2));
            replace_call(*call, made.realloc(), {call->getArgOperand(0), bytes});
            continue;
        }
        if (callee_of(*call) == nullptr) {
            made.call_managing(*call);
            continue;
        }
        if (!is_allocation(*call)) {
            const llvm::Function& maker = *callee_of(*call);
            call->setCalledFunction(module.getOrInsertFunction(
                managing_twin_of(maker), maker.getFunctionType(), maker.getAttributes()));
            continue;
        }
        llvm::Value* first = call->getArgOperand(0);
        llvm::Value* second = call->arg_size() > 1 ? call->getArgOperand(1) : nullptr;
        switch (kind_of(*call)) {
        case memory_call::malloc_like:
            replace_call(*call, function("malloc", pointer, {size}), {first});
            break;
        case memory_call::calloc_like:
            replace_call(*call, function("calloc", pointer, {size, size}), {first, second});
            break;
        case memory_call::aligned_like:
            replace_call(*call, function("aligned_alloc", pointer, {size, size}), {first, second});
            break;
        case memory_call::new_like:
            replace_call(*call, function("new", pointer, {size}), {first});
            break;
        case memory_call::new_nothrow:
            replace_call(*call, function("new_nothrow", pointer, {size}), {first});
            break;
        case memory_call::new_aligned:
            replace_call(*call, function("new_aligned", pointer, {size, size}), {first, second});
            break;
        case memory_call::new_array:
            replace_call(*call, function("new_array", pointer, {size}), {first});
            break;
        case memory_call::duplicates:
            second = llvm::Constant::getAllOnesValue(size);
            [[fallthrough]];
        case memory_call::duplicates_some:
            replace_call(*call, made.strndup(), {first, second});
            break;
        default:
            break;
        }
    }

    llvm::SmallVector<llvm::CallBase*, 32> others;
    for (llvm::Function& f : module)
        for (llvm::Instruction& i : llvm::instructions(f))
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
                call != nullptr && is_memory_call(*call) && !is_allocation(*call))
                others.push_back(call);
    for (llvm::CallBase* call : others) {
        llvm::Value* address = call->getArgOperand(0);
        llvm::Value* zero = llvm::ConstantInt::get(size, 0);
        llvm::Value* bytes = zero;
        llvm::Value* alignment = zero;
        // What follows the address: a size is i64 and comes first, unless the name says that it is
        // an alignment; a nothrow tag is a pointer.
        const bool aligned = callee_of(*call)->getName().ends_with("St11align_val_t");
        const unsigned count = call->arg_size();
        if (aligned) alignment = call->getArgOperand(count - 1);
        if (count > (aligned ? 2u : 1u) && call->getArgOperand(1)->getType() == size)
            bytes = call->getArgOperand(1);
        switch (kind_of(*call)) {
        case memory_call::reallocates:
            replace_call(*call, function("realloc", pointer, {pointer, size}),
                         {address, call->getArgOperand(1)});
            break;
        case memory_call::reallocates_array:
            replace_call(*call, function("reallocarray", pointer, {pointer, size, size}),
                         {address, call->getArgOperand(1), call->getArgOperand(2)});
            break;
        case memory_call::unmaps:
            replace_call(
                *call,
                function("munmap", llvm::Type::getInt32Ty(module.getContext()), {pointer, size}),
                {address, call->getArgOperand(1)});
            break;
        case memory_call::asks_size:
            replace_call(*call, function("usable_size", size, {pointer}), {address});
            break;
        case memory_call::frees:
            replace_call(*call, function("free", nothing, {pointer}), {address});
            break;
        case memory_call::deletes:
            replace_call(*call, function("delete", nothing, {pointer, size, size}),
                         {address, bytes, alignment});
            break;
        case memory_call::deletes_array:
            replace_call(*call, function("delete_array", nothing, {pointer, size, size}),
                         {address, bytes, alignment});
            break;
        default:
            break;
        }
    }
    replace_addresses(module);
}

} // namespace obase::passes
