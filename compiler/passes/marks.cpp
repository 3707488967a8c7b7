// SPDX-License-Identifier: MIT
//
// The front end's marks in the module: llvm.ptr.annotation for fields, llvm.global.annotations for
// functions, llvm.var.annotation for variables.
#include "instrumentation.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/GlobalAlias.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/ReplaceConstant.h>

namespace obase::passes {

namespace {

// compiler/frontend/annotations.hpp
constexpr llvm::StringLiteral guided_text = "obase::guided";
constexpr llvm::StringLiteral elements_text = "obase::guided.elements";
constexpr llvm::StringLiteral makes_text = "obase::makes";

// The text of an annotation: a constant string.
llvm::StringRef text_of(const llvm::Value* v) {
    const auto* variable = llvm::dyn_cast<llvm::GlobalVariable>(v->stripPointerCasts());
    if (variable == nullptr || !variable->hasInitializer()) return {};
    const auto* text = llvm::dyn_cast<llvm::ConstantDataSequential>(variable->getInitializer());
    return text != nullptr && text->isCString() ? text->getAsCString() : llvm::StringRef();
}

void read_function_marks(llvm::Module& module, marks& found) {
    llvm::GlobalVariable* all = module.getGlobalVariable("llvm.global.annotations");
    if (all == nullptr || !all->hasInitializer()) return;
    const auto* list = llvm::dyn_cast<llvm::ConstantArray>(all->getInitializer());
    if (list == nullptr) return;
    llvm::SmallVector<llvm::Constant*, 32> others;
    for (const llvm::Use& entry : list->operands()) {
        auto* row = llvm::cast<llvm::Constant>(entry.get());
        const llvm::StringRef text = text_of(row->getOperand(1));
        auto* f = llvm::dyn_cast<llvm::Function>(row->getOperand(0)->stripPointerCasts());
        if (auto* variable =
                llvm::dyn_cast<llvm::GlobalVariable>(row->getOperand(0)->stripPointerCasts());
            variable != nullptr && text.starts_with("obase::")) {
            found.variables[variable] |= text == elements_text;
            continue;
        }
        if (f == nullptr || !text.starts_with("obase::")) {
            others.push_back(row);
        } else if (text == "obase::entry") {
            found.roles[f] = role::entry; // the stronger one: it may be called from anywhere
        } else if (text == "obase::internal") {
            found.roles.try_emplace(f, role::internal);
        } else if (text == makes_text) {
            found.makers.insert(f);
        } else if (text == "obase::ends_slots") {
            found.destructors.insert(f);
        }
    }
    if (others.size() == list->getNumOperands()) return;
    // The others' list anew: the old one would keep functions alive that have been inlined away.
    const std::string name = all->getName().str();
    const std::string section = all->getSection().str();
    all->eraseFromParent();
    if (others.empty()) return;
    auto* rest = llvm::ConstantArray::get(
        llvm::ArrayType::get(others.front()->getType(), others.size()), others);
    auto* fresh = new llvm::GlobalVariable(module, rest->getType(), false,
                                           llvm::GlobalValue::AppendingLinkage, rest, name);
    fresh->setSection(section);
}

} // namespace

marks read_marks(llvm::Module& module) {
    marks found;
    read_function_marks(module, found);
    return found;
}

namespace {
bool is_annotation(const llvm::Value& v, llvm::StringRef text) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&v);
    return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::ptr_annotation &&
           text_of(call->getArgOperand(1)) == text;
}

// Each function that names the variable gets its address from an annotation, as that of a field.
void annotate_in_functions(llvm::GlobalVariable& variable, bool elements) {
    llvm::Module& module = *variable.getParent();
    llvm::convertUsersOfConstantsToInstructions({&variable});
    llvm::DenseMap<llvm::Function*, llvm::Value*> addresses;
    for (llvm::Use& u : llvm::make_early_inc_range(variable.uses())) {
        auto* user = llvm::dyn_cast<llvm::Instruction>(u.getUser());
        if (user == nullptr) continue;
        llvm::Function& f = *user->getFunction();
        llvm::Value*& address = addresses[&f];
        if (address == nullptr) {
            llvm::IRBuilder<> top(&f.getEntryBlock(),
                                  f.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
            llvm::Type* pointer = top.getPtrTy();
            const auto call = [&](llvm::Value* of, llvm::StringRef text) {
                return top.CreateIntrinsic(
                    llvm::Intrinsic::ptr_annotation, {pointer, pointer},
                    {of, top.CreateGlobalString(text, "", 0, &module),
                     top.CreateGlobalString(module.getSourceFileName(), "", 0, &module),
                     top.getInt32(0), llvm::ConstantPointerNull::get(top.getPtrTy())});
            };
            // Not by `u`: that of the annotation itself stays.
            address = call(&variable, guided_text);
            if (elements) address = call(address, elements_text);
        }
        u.set(address);
    }
}
} // namespace

bool is_field_annotation(const llvm::Value& v) { return is_annotation(v, guided_text); }
bool is_elements_annotation(const llvm::Value& v) { return is_annotation(v, elements_text); }
bool is_maker(const llvm::CallBase& call) {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(call.getCalledOperand());
    return load != nullptr && is_annotation(*load->getPointerOperand(), makes_text);
}

void annotate_variables(const marks& said) {
    for (const auto& [variable, elements] : said.variables)
        annotate_in_functions(*variable, elements);
}

llvm::StringRef about_field(const llvm::Value& annotation) {
    const auto* call = llvm::cast<llvm::CallBase>(&annotation);
    const auto* arguments = llvm::dyn_cast<llvm::GlobalVariable>(
        call->getArgOperand(call->arg_size() - 1)->stripPointerCasts());
    if (arguments == nullptr || !arguments->hasInitializer()) return {};
    const auto* list = llvm::dyn_cast<llvm::ConstantStruct>(arguments->getInitializer());
    return list != nullptr && list->getNumOperands() == 1 ? text_of(list->getOperand(0))
                                                          : llvm::StringRef();
}

llvm::AllocaInst* annotated_variable(llvm::Instruction& i) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::var_annotation ||
        text_of(call->getArgOperand(1)) != "obase::slots")
        return nullptr;
    return llvm::dyn_cast<llvm::AllocaInst>(call->getArgOperand(0)->stripPointerCasts());
}

llvm::Function* callee_of(const llvm::CallBase& call) {
    llvm::Value* called = call.getCalledOperand()->stripPointerCasts();
    if (auto* alias = llvm::dyn_cast<llvm::GlobalAlias>(called)) called = alias->getAliaseeObject();
    return llvm::dyn_cast<llvm::Function>(called);
}

bool for_each_call(const llvm::Function& f, llvm::function_ref<void(llvm::CallBase&)> use) {
    bool all_seen = true;
    llvm::SmallVector<const llvm::Value*, 4> names{&f};
    for (std::size_t i = 0; i < names.size(); ++i)
        for (const llvm::Use& u : names[i]->uses()) {
            auto* call = llvm::dyn_cast<llvm::CallBase>(u.getUser());
            if (call != nullptr && call->isCallee(&u))
                use(*call);
            else if (auto* alias = llvm::dyn_cast<llvm::GlobalAlias>(u.getUser())) {
                names.push_back(alias);
                all_seen = all_seen && alias->hasLocalLinkage();
            } else
                all_seen = false;
        }
    return all_seen;
}

} // namespace obase::passes
