// SPDX-License-Identifier: MIT
//
// Where the plugins write what they report of one translation unit.
#pragma once

#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Support/xxhash.h>

#include <string>

namespace obase {

// `path` is that of the file, or of a directory; the file is then named after the source and its
// folder, so that two sources of one name have two files. Empty if what write(stream) wrote is there,
// else what went wrong.
template <class Write>
std::string write_report(llvm::StringRef path, llvm::StringRef source, llvm::StringRef extension,
                         Write&& write) {
    llvm::SmallString<128> file(path);
    if (llvm::sys::fs::is_directory(path)) {
        llvm::SmallString<128> whole(source);
        if (const std::error_code failed = llvm::sys::fs::make_absolute(whole))
            return source.str() + ": " + failed.message();
        llvm::sys::path::append(file, llvm::sys::path::filename(source) + "." +
                                          llvm::utohexstr(llvm::xxh3_64bits(whole), true, 16) +
                                          "." + extension);
    }
    std::error_code failed;
    llvm::raw_fd_ostream out(file, failed);
    if (failed) return file.str().str() + ": " + failed.message();
    write(out);
    out.close();
    return out.has_error() ? file.str().str() + ": " + out.error().message() : std::string();
}

} // namespace obase
