// SPDX-License-Identifier: MIT
#include "output.hpp"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace obase::rewrite {

output::output(const edits& changes, std::string root, const manner& how)
    : changes_(changes), root_(std::move(root)), how_(how) {}

std::string output::below_root(const std::string& path) const {
    return path.substr(root_.size() + 1);
}

std::string output::make() {
    for (const auto& [path, before] : changes_.files()) {
        unsigned conflict = 0;
        std::string text = changes_.text_of(path, conflict);
        if (text.empty() && !before.empty()) {
            const auto line = 1 + std::count(before.begin(), before.begin() + conflict, '\n');
            return path + ":" + std::to_string(line) +
                   ": this line would have to be changed in two ways at once: a macro uses its "
                   "argument twice, or instances of a template differ; write it without";
        }
        if (changes_.changes(path)) {
            const std::string name = below_root(path);
            std::string head = "/* Made by obase-rewrite from " + name + ". */\n";
            if (how_.on == protocol::atc) head += "#define OBASE_PROTOCOL_ATC\n";
            head += "#include <obase/marked_access.h>\n";
            if (how_.lines) head += "#line 1 \"" + name + "\"\n";
            text.insert(0, head);
        }
        files_[path] = std::move(text);
    }
    return {};
}

std::string output::write(const std::string& directory) const {
    std::vector<std::pair<std::string, std::string>> renames;
    std::string wrong;
    for (const auto& [path, text] : files_) {
        llvm::SmallString<256> to(directory);
        llvm::sys::path::append(to, below_root(path));
        const auto failed = [&](std::error_code why) {
            wrong = to.str().str() + ": " + why.message();
        };
        if (const auto why = llvm::sys::fs::create_directories(llvm::sys::path::parent_path(to))) {
            failed(why);
            break;
        }
        int file = -1;
        llvm::SmallString<256> beside;
        if (const auto why = llvm::sys::fs::createUniqueFile(to.str() + ".%%%%%%", file, beside,
                                                             llvm::sys::fs::OF_None, 0644)) {
            failed(why);
            break;
        }
        renames.emplace_back(beside.str().str(), to.str().str());
        llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
        out << text;
        out.close();
        if (!out.has_error()) continue;
        failed(out.error());
        out.clear_error();
        break;
    }
    for (const auto& [beside, to] : renames) {
        if (wrong.empty())
            if (const auto why = llvm::sys::fs::rename(beside, to))
                wrong = to + ": " + why.message();
        if (!wrong.empty()) llvm::sys::fs::remove(beside);
    }
    return wrong;
}

} // namespace obase::rewrite
