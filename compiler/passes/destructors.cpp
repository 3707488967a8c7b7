// SPDX-License-Identifier: MIT
//
// Destructors: which of them end slots. The memory is freed afterwards, when the runtime finds no slots
// in it any more, though operations may still be looking at it.
#include "instrumentation.hpp"

#include <llvm/Demangle/Demangle.h>

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

} // namespace

bool is_destructor(const llvm::Function& f) {
    const llvm::StringRef name = f.getName();
    return name.starts_with("_ZN") && (name.ends_with("D1Ev") || name.ends_with("D2Ev"));
}

llvm::DenseSet<const llvm::Function*> functions_that_end_slots(const llvm::Module& module,
                                                               const slots& fields) {
    llvm::SetVector<const llvm::Function*> destructors;
    for (const llvm::Function& f : module)
        if (is_destructor(f) && (fields.members.contains(&f) ||
                                 (f.isDeclaration() && is_of_class_with_slots(f, fields))))
            destructors.insert(&f);
    llvm::DenseSet<const llvm::Function*> found;
    for (std::size_t i = 0; i < destructors.size(); ++i)
        for_each_call(*destructors[i], [&](llvm::CallBase& call) {
            const llvm::Function* caller = call.getFunction();
            found.insert(caller);
            if (is_destructor(*caller))
                destructors.insert(caller); // of a derived class, or a member's
        });
    return found;
}

} // namespace obase::passes
