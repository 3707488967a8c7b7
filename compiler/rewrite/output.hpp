// SPDX-License-Identifier: MIT
//
// The written files: all or none.
#pragma once

#include "edits.hpp"
#include "manner.hpp"

#include "llvm/ADT/StringRef.h"

#include <map>
#include <string>

namespace obase::rewrite {

class output {
  public:
    output(const edits& changes, std::string root, const manner& how);

    // Applies the changes. Empty if all is well, as with write.
    std::string make();
    // Below this directory, with the folders below the root. Each file is whole or not there: they are
    // written beside their places, and renamed when all are.
    std::string write(const std::string& directory) const;

    bool has(llvm::StringRef path) const { return files_.count(path.str()) != 0; }
    // By the path of the original; those that needed no change are as they were.
    const std::map<std::string, std::string>& files() const { return files_; }

  private:
    std::string below_root(const std::string& path) const;

    const edits& changes_;
    std::string root_;
    manner how_;
    std::map<std::string, std::string> files_;
};

} // namespace obase::rewrite
