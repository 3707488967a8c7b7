// SPDX-License-Identifier: MIT
//
// Destructors: which of them end slots. The memory is freed afterwards, when the runtime finds no slots
// in it any more, though operations may still be looking at it.
#include "instrumentation.hpp"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/InstIterator.h>

namespace obase::passes {

namespace {

// Of a destructor that is defined elsewhere the class may be known here, by name.
bool is_of_class_with_slots(const llvm::Function& destructor, const slots& fields) {
    const std::string whole = llvm::demangle(destructor.getName());
    const llvm::StringRef name = llvm::StringRef(whole).rsplit("::~").first;
    for (const llvm::StructType* type : fields.types) {
        if (!type->hasName()) continue;
        // struct.name, class.name, and with a number behind where there are several
        const llvm::StringRef known = type->getName().split('.').second;
        if (known == name || (known.starts_with(name) && known.drop_front(name.size())[0] == '.'))
            return true;
    }
    return false;
}

bool ends_slots(const llvm::Function& destructor, const slots& fields,
                llvm::SmallPtrSetImpl<const llvm::Function*>& seen) {
    if (!is_destructor(destructor) || !seen.insert(&destructor).second) return false;
    if (fields.members.contains(&destructor)) return true;
    if (destructor.isDeclaration()) return is_of_class_with_slots(destructor, fields);
    for (const llvm::Instruction& i : llvm::instructions(destructor))
        if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i))
            if (const llvm::Function* callee = callee_of(*call);
                callee != nullptr && ends_slots(*callee, fields, seen))
                return true;
    return false;
}

} // namespace

bool is_destructor(const llvm::Function& f) {
    const llvm::StringRef name = f.getName();
    return name.starts_with("_ZN") && (name.ends_with("D1Ev") || name.ends_with("D2Ev"));
}

bool ends_slots(const llvm::Function& destructor, const slots& fields) {
    llvm::SmallPtrSet<const llvm::Function*, 8> seen;
    return ends_slots(destructor, fields, seen);
}

} // namespace obase::passes
