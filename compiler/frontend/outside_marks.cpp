// SPDX-License-Identifier: MIT
#include "outside_marks.hpp"

#include "annotations.hpp"

#include "clang/AST/DeclCXX.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MemoryBuffer.h"

#include <utility>

namespace obase::frontend {

namespace {

llvm::StringRef own_name(const clang::NamedDecl* declaration) {
    if (const auto* identifier = declaration->getIdentifier()) return identifier->getName();
    // typedef struct { ... } name;
    if (const auto* tag = llvm::dyn_cast<clang::TagDecl>(declaration))
        if (const auto* alias = tag->getTypedefNameForAnonDecl()) return alias->getName();
    return {};
}

} // namespace

std::string plain_name(const clang::NamedDecl* declaration) {
    llvm::SmallVector<std::string, 4> parts;
    const llvm::StringRef own = own_name(declaration);
    // Operators and constructors have names that are no identifiers; anonymous structs have none.
    std::string last = own.empty() ? declaration->getNameAsString() : own.str();
    if (!last.empty()) parts.push_back(std::move(last));
    for (const auto* context = declaration->getDeclContext(); context != nullptr;
         context = context->getParent()) {
        const auto* named = llvm::dyn_cast<clang::NamedDecl>(context);
        if (named == nullptr) continue;
        const auto* space = llvm::dyn_cast<clang::NamespaceDecl>(named);
        if (space != nullptr && (space->isInline() || space->isAnonymousNamespace())) continue;
        // An anonymous struct inside a struct: its fields are the outer one's.
        const llvm::StringRef name = own_name(named);
        if (!name.empty()) parts.push_back(name.str());
    }
    std::string whole;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
        if (!whole.empty()) whole += "::";
        whole += *part;
    }
    return whole;
}

std::string outside_marks::read(llvm::StringRef path) {
    path_ = path.str();
    auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
    if (!text) return path_ + ": " + text.getError().message();

    llvm::SmallVector<llvm::StringRef, 32> lines;
    (*text)->getBuffer().split(lines, '\n');
    for (unsigned number = 1; number <= lines.size(); ++number) {
        const llvm::StringRef line = lines[number - 1].split('#').first.trim();
        if (line.empty()) continue;
        const auto wrong = [&](const char* what) {
            return path_ + ":" + std::to_string(number) + ": " + what + ": '" + line.str() + "'";
        };
        const auto [first, rest] = line.split(' ');
        if (!rest.empty()) {
            const llvm::StringRef role = first == "entry"      ? entry_text
                                         : first == "internal" ? internal_text
                                         : first == "outside"  ? outside_text
                                                               : llvm::StringRef();
            const bool makes = first == "makes";
            if (role.empty() && !makes) return wrong("neither entry, internal, outside nor makes");
            if (rest.trim().contains(' ')) return wrong("one name is wanted");
            if (makes)
                makers_.insert(rest.trim());
            else
                roles_[rest.trim()] = role;
            continue;
        }
        const auto [record, field] = line.rsplit("::");
        if (record.empty() || field.empty()) return wrong("not of the form struct::field");
        fields_[record][field.str()] = number;
    }
    return {};
}

void outside_marks::apply(clang::RecordDecl* record, report& says) {
    // The type of a member that has no name of its own would be known by that of the struct around it.
    if (own_name(record).empty()) return;
    if (!makers_.empty())
        for (auto* field : record->fields())
            if (field->getType()->isFunctionPointerType() && makes(field))
                annotate(field, makes_text);
    const auto named = fields_.find(plain_name(record));
    if (named == fields_.end()) return;
    std::map<std::string, unsigned> missing = named->second;
    for (auto* field : record->fields()) {
        if (missing.erase(field->getNameAsString()) != 0) annotate(field, guided_text);
        // Fields of an anonymous struct are used, and so named, as the outer one's.
        if (!field->isAnonymousStructOrUnion()) continue;
        if (auto* inner = field->getType()->getAsRecordDecl())
            for (auto* nested : inner->fields())
                if (missing.erase(nested->getNameAsString()) != 0) annotate(nested, guided_text);
    }
    for (const auto& [name, line] : missing)
        says.refuse(record->getLocation(), "marks-file",
                    "'" + plain_name(record) + "' has no field '" + name + "', which " + path_ +
                        ":" + std::to_string(line) + " marks",
                    "correct or remove the line");
}

llvm::StringRef outside_marks::role(const clang::FunctionDecl* function) const {
    if (roles_.empty()) return {};
    return roles_.lookup(plain_name(function));
}

bool outside_marks::makes(const clang::NamedDecl* function) const {
    return !makers_.empty() && makers_.contains(plain_name(function));
}

bool outside_marks::names_field(const clang::FieldDecl* field) const {
    const auto record = fields_.find(plain_name(field->getParent()));
    return record != fields_.end() && record->second.count(field->getNameAsString()) != 0;
}

} // namespace obase::frontend
