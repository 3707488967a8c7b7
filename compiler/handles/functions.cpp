// SPDX-License-Identifier: MIT
//
// Two ways into a function. The *body* is what instrumented code calls. The *entry* has the function's name and address: it
// is called by everybody else, and registers the thread, or brings it online, for as long as the body runs.
//
// An entry begins with sixteen bytes that do nothing: a word that says what it is, and how far it is to the body; so an
// indirect call finds the body (calls.cpp). Variadic functions cannot hand their arguments on: the entry is a second copy
// of the code, which enters and leaves inside. Instrumented code that called it would count as called back: nothing comes
// home for foreign code under that, and polls announce nothing. Code that may not be copied is its own body, with that.
#include "handles.hpp"
#include "prologue.hpp"

#include <llvm/IR/AttributeMask.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/EscapeEnumerator.h>

namespace obase::handles {

runtime::runtime(llvm::Module& m) : module(m) {
    llvm::LLVMContext& context = m.getContext();
    llvm::Type* byte = llvm::Type::getInt8Ty(context);
    llvm::Type* nothing = llvm::Type::getVoidTy(context);
    llvm::Type* pointer = llvm::PointerType::getUnqual(context);
    llvm::Type* word = llvm::Type::getInt64Ty(context);
    // In a program the library is linked into it.
    const bool local = !is_library(m);
    poll_wanted =
        llvm::cast<llvm::GlobalVariable>(m.getOrInsertGlobal("obase_handles_poll_wanted", byte));
    poll_wanted->setDSOLocal(local);
    const auto function = [&](llvm::StringRef name, llvm::Type* result,
                              llvm::ArrayRef<llvm::Type*> of) {
        auto made = m.getOrInsertFunction(name, llvm::FunctionType::get(result, of, false));
        if (auto* f = llvm::dyn_cast<llvm::Function>(made.getCallee())) {
            f->setDSOLocal(local);
            f->addFnAttr(llvm::Attribute::NoUnwind);
        }
        return made;
    };
    offline = function("obase_handles_offline", nothing, {});
    online = function("obase_handles_online", nothing, {});
    enter = function("obase_handles_enter", word, {});
    leave = function("obase_handles_leave", nothing, {word});
    keep = function("obase_handles_keep", pointer, {pointer});
    pin = function("obase_handles_pin", pointer, {pointer});
    unpin = function("obase_handles_unpin", nothing, {pointer});
    home = function("obase_handles_home", pointer, {pointer});
    state = function("obase_handles_jump_save", word, {});
    restore = function("obase_handles_jump_restore", nothing, {word});
}

llvm::FunctionCallee runtime::named(llvm::StringRef name, llvm::FunctionType* type) const {
    return module.getOrInsertFunction(name, type);
}

bool is_library(const llvm::Module& module) {
    return module.getPICLevel() != llvm::PICLevel::NotPIC &&
           module.getPIELevel() == llvm::PIELevel::Default;
}

bool may_be_replaced(const llvm::GlobalValue& f) {
    if (f.hasLocalLinkage()) return false;
    if (f.hasWeakAnyLinkage() || f.hasLinkOnceAnyLinkage()) return true;
    return is_library(*f.getParent()) && !f.isDSOLocal() && f.hasDefaultVisibility() &&
           !f.hasLinkOnceODRLinkage() && !f.hasWeakODRLinkage();
}

bool is_thunk(const llvm::Function& f) {
    return f.hasWeakAnyLinkage() && f.hasFnAttribute(llvm::Attribute::NoInline) &&
           f.getName().starts_with("__obase_h.");
}

llvm::FunctionCallee runtime::kept_call(llvm::StringRef name, bool translates) const {
    llvm::LLVMContext& context = module.getContext();
    llvm::Type* pointer = llvm::PointerType::getUnqual(context);
    std::string target = ("\"" + name + (translates ? "_$0\"" : "\"")).str();
    // Not by a stub that binds at the first call: that keeps no r10, and no mask registers.
    const std::string text =
        is_library(module) ? "call *" + target + "@GOTPCREL(%rip)" : "call " + target;
    // LLVM takes long for each register that is named here.
    std::string constraints = translates ? "=r,0," : "~{memory},";
    constraints += "~{r11},~{flags}";
    auto* type = translates ? llvm::FunctionType::get(pointer, {pointer}, false)
                            : llvm::FunctionType::get(llvm::Type::getVoidTy(context), {}, false);
    return {type, llvm::InlineAsm::get(type, text, constraints, /*hasSideEffects=*/true)};
}

llvm::Constant* runtime::cleaning_personality() const {
    auto* type = llvm::FunctionType::get(llvm::Type::getInt32Ty(module.getContext()), true);
    return llvm::cast<llvm::Constant>(
        module.getOrInsertFunction("__gcc_personality_v0", type).getCallee());
}

std::string body_name(llvm::StringRef name) { return ("__obase_h." + name).str(); }

namespace {

// What is no longer true, now that code reads the table and polls, and that objects are elsewhere.
void weaken(llvm::AttributeList& all, llvm::LLVMContext& context) {
    llvm::AttributeMask of_function;
    for (const auto kind : {llvm::Attribute::Memory, llvm::Attribute::NoSync,
                            llvm::Attribute::NoFree, llvm::Attribute::WillReturn,
                            llvm::Attribute::Speculatable, llvm::Attribute::AlwaysInline})
        of_function.addAttribute(kind);
    all = all.removeFnAttributes(context, of_function);
    llvm::AttributeMask of_address;
    for (const auto kind :
         {llvm::Attribute::ReadNone, llvm::Attribute::ReadOnly, llvm::Attribute::WriteOnly,
          llvm::Attribute::Dereferenceable, llvm::Attribute::DereferenceableOrNull,
          llvm::Attribute::NoAlias, llvm::Attribute::NoCapture, llvm::Attribute::NoFree,
          llvm::Attribute::Writable, llvm::Attribute::DeadOnUnwind, llvm::Attribute::Initializes})
        of_address.addAttribute(kind);
    for (unsigned i = 0; i + 1 < all.getNumAttrSets() + 1; ++i)
        if (all.hasParamAttrs(i)) all = all.removeParamAttributes(context, i, of_address);
    all = all.removeRetAttributes(context, of_address);
}

void weaken(llvm::Function& f) {
    llvm::LLVMContext& context = f.getContext();
    llvm::AttributeList all = f.getAttributes();
    weaken(all, context);
    f.setAttributes(all);
    for (llvm::BasicBlock& block : f)
        for (llvm::Instruction& i : block) {
            if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) {
                const llvm::Function* callee = call->getCalledFunction();
                if (callee != nullptr && callee->isIntrinsic()) continue;
                all = call->getAttributes();
                weaken(all, context);
                call->setAttributes(all);
            }
            i.setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
            i.setMetadata(llvm::LLVMContext::MD_dereferenceable, nullptr);
            i.setMetadata(llvm::LLVMContext::MD_dereferenceable_or_null, nullptr);
        }
}

void mark(llvm::Function& entry, llvm::Function& body) {
    llvm::LLVMContext& context = entry.getContext();
    llvm::Type* word = llvm::Type::getInt64Ty(context);
    llvm::Type* half = llvm::Type::getInt32Ty(context);
    llvm::Constant* distance = llvm::ConstantInt::get(half, 0);
    if (&entry != &body)
        distance = llvm::ConstantExpr::getTrunc(
            llvm::ConstantExpr::getSub(llvm::ConstantExpr::getPtrToInt(&body, word),
                                       llvm::ConstantExpr::getPtrToInt(&entry, word)),
            half);
    entry.setPrologueData(
        llvm::ConstantStruct::getAnon({llvm::ConstantInt::get(word, prologue::word),
                                       llvm::ConstantInt::get(half, prologue::nop), distance},
                                      true));
}

// A module that defines this variable (libstdcxx.cpp) has templates that other units do not instantiate: its bodies are
// stronger than the thunks there.
constexpr const char* copies = "obase_handles_copies";

// Who finds the body by its name.
void link_body(llvm::Function& f, llvm::Function* body) {
    // A group of its own: of the entry's the linker may take one from a unit that was not compiled so, without a body.
    if (const llvm::Comdat* group = f.getComdat(); group != nullptr) {
        llvm::Comdat* own = f.getParent()->getOrInsertComdat(body_name(group->getName()));
        own->setSelectionKind(group->getSelectionKind());
        body->setComdat(own);
    }
    body->setPrologueData(nullptr);
    if (may_be_replaced(f)) {
        // Others do not find it by its name, which may be another one's; they find it by the entry that is linked.
        body->setComdat(nullptr);
        body->setVisibility(llvm::GlobalValue::DefaultVisibility);
        body->setLinkage(llvm::GlobalValue::InternalLinkage);
        body->setDSOLocal(true);
    } else if (!f.hasLocalLinkage()) {
        body->setVisibility(llvm::GlobalValue::HiddenVisibility);
        body->setDSOLocal(true);
        if (f.hasWeakODRLinkage() && f.getParent()->getNamedValue(copies) != nullptr) {
            body->setComdat(nullptr);
            body->setLinkage(llvm::GlobalValue::ExternalLinkage);
        }
    }
}

// Moves the function's code into a function of its own, and leaves it empty.
llvm::Function& moved_body(llvm::Function& f) {
    auto* body = llvm::Function::Create(f.getFunctionType(), f.getLinkage(), f.getAddressSpace(),
                                        body_name(f.getName()), f.getParent());
    body->copyAttributesFrom(&f);
    link_body(f, body);
    llvm::SmallVector<llvm::BlockAddress*, 8> labels;
    for (llvm::User* user : f.users())
        if (auto* label = llvm::dyn_cast<llvm::BlockAddress>(user)) labels.push_back(label);
    body->splice(body->begin(), &f);
    for (unsigned i = 0; i < f.arg_size(); ++i) {
        f.getArg(i)->replaceAllUsesWith(body->getArg(i));
        body->getArg(i)->takeName(f.getArg(i));
    }
    for (llvm::BlockAddress* label : labels) {
        label->replaceAllUsesWith(llvm::BlockAddress::get(body, label->getBasicBlock()));
        label->destroyConstant();
    }
    body->copyMetadata(&f, 0);
    f.clearMetadata();
    return *body;
}

void fill_entry(const module_state& state, llvm::Function& entry, llvm::Function& body) {
    llvm::LLVMContext& context = entry.getContext();
    entry.setPersonalityFn(nullptr);
    entry.removeFnAttr(llvm::Attribute::OptimizeNone);
    llvm::IRBuilder<> build(llvm::BasicBlock::Create(context, "", &entry));
    llvm::Value* token = build.CreateCall(state.names.enter);
    llvm::SmallVector<llvm::Value*, 8> arguments;
    for (llvm::Argument& argument : entry.args()) arguments.push_back(&argument);
    llvm::Value* result = nullptr;
    if (!body.doesNotThrow()) {
        // An exception that leaves the body leaves the entry, also if the body has nothing to clean up.
        entry.setPersonalityFn(body.hasPersonalityFn() ? body.getPersonalityFn()
                                                       : state.names.cleaning_personality());
        auto* after = llvm::BasicBlock::Create(context, "", &entry);
        auto* thrown = llvm::BasicBlock::Create(context, "", &entry);
        auto* call = build.CreateInvoke(&body, after, thrown, arguments);
        call->setCallingConv(body.getCallingConv());
        call->setAttributes(body.getAttributes());
        result = call;
        build.SetInsertPoint(thrown);
        llvm::LandingPadInst* pad = build.CreateLandingPad(
            llvm::StructType::get(llvm::PointerType::getUnqual(context), build.getInt32Ty()), 0);
        pad->setCleanup(true);
        build.CreateCall(state.names.leave, {token});
        build.CreateResume(pad);
        build.SetInsertPoint(after);
    } else {
        auto* call = build.CreateCall(&body, arguments);
        call->setCallingConv(body.getCallingConv());
        // What is passed in memory must be passed so again.
        call->setAttributes(
            llvm::AttributeList::get(context, {}, body.getAttributes().getRetAttrs(), [&] {
                llvm::SmallVector<llvm::AttributeSet, 8> sets;
                for (unsigned i = 0; i < body.arg_size(); ++i)
                    sets.push_back(body.getAttributes().getParamAttrs(i));
                return sets;
            }()));
        result = call;
    }
    build.CreateCall(state.names.leave, {token});
    if (entry.getReturnType()->isVoidTy())
        build.CreateRetVoid();
    else
        build.CreateRet(result);
    weaken(entry);
}

void enter_inside(const module_state& state, llvm::Function& f) {
    llvm::BasicBlock& first = f.getEntryBlock();
    llvm::IRBuilder<> build(&first, first.getFirstNonPHIOrDbgOrAlloca());
    llvm::Value* token = build.CreateCall(state.names.enter);
    llvm::EscapeEnumerator exits(f, "obase.leave", f.hasPersonalityFn());
    while (llvm::IRBuilder<>* here = exits.Next()) here->CreateCall(state.names.leave, {token});
}

// Code that there may be only once: what variables know the labels of, and what says so itself.
bool may_be_copied(const llvm::Function& f) {
    for (const llvm::BasicBlock& block : f) {
        if (block.hasAddressTaken()) return false;
        for (const llvm::Instruction& i : block)
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
                call != nullptr && (call->cannotDuplicate() || call->isInlineAsm()))
                return false;
    }
    return true;
}

// The function's code again, for callers that are inside.
llvm::Function& copied_body(llvm::Function& f) {
    llvm::ValueToValueMapTy map;
    llvm::Function* body = llvm::CloneFunction(&f, map);
    body->setName(body_name(f.getName()));
    link_body(f, body);
    return *body;
}

bool needs_entry(const llvm::Function& f) { return !f.hasLocalLinkage() || f.hasAddressTaken(); }

} // namespace

void make_bodies(module_state& state) {
    llvm::Module& module = state.names.module;
    llvm::SmallVector<llvm::Function*, 64> defined;
    for (llvm::Function& f : module) {
        if (f.isDeclaration()) continue;
        if (f.hasAvailableExternallyLinkage()) {
            f.deleteBody();
            continue;
        }
        if (f.hasFnAttribute(llvm::Attribute::Naked)) continue;
        defined.push_back(&f);
    }
    for (llvm::Function* f : defined) {
        weaken(*f);
        llvm::Function* body = f;
        if (needs_entry(*f)) {
            if (f->isVarArg()) {
                if (may_be_copied(*f)) {
                    body = &copied_body(*f);
                    state.bodies.insert(f);
                }
                enter_inside(state, *f);
            } else {
                body = &moved_body(*f);
                fill_entry(state, *f, *body);
            }
            mark(*f, *body);
        }
        state.body_of[f] = body;
        state.bodies.insert(body);
    }
    // Other names of a function are those of its entry; its body has them, too.
    llvm::SmallVector<llvm::GlobalAlias*, 8> aliases;
    for (llvm::GlobalAlias& alias : module.aliases()) aliases.push_back(&alias);
    for (llvm::GlobalAlias* alias : aliases) {
        auto* f = llvm::dyn_cast_or_null<llvm::Function>(alias->getAliaseeObject());
        llvm::Function* body = f != nullptr ? state.body_of.lookup(f) : nullptr;
        if (body == nullptr || body == f || alias->hasLocalLinkage() || may_be_replaced(*alias))
            continue;
        // As strong as the body, if that is stronger.
        const auto linkage = body->hasExternalLinkage() ? body->getLinkage() : alias->getLinkage();
        auto* other = llvm::GlobalAlias::create(body->getFunctionType(), 0, linkage,
                                                body_name(alias->getName()), body, &module);
        other->setVisibility(llvm::GlobalValue::HiddenVisibility);
        other->setDSOLocal(true);
    }
}

} // namespace obase::handles
