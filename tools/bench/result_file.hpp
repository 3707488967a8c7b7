// SPDX-License-Identifier: MIT
//
// result_file: the file that a run's result goes to. It is made sure before the run that the file
// can be written, and the name never refers to half a result: the text goes to a temporary file
// beside it, which takes the name over when it is complete.
//
// A name that is not a regular file (a pipe, /dev/stdout) is opened and written as it is.
#pragma once

#include <string>

namespace obase::tools {

// True if both names are of one file, there or not yet. "" is no file.
bool same_file(const std::string& a, const std::string& b);

class result_file {
  public:
    // Throws std::runtime_error with the name and the reason when it cannot be written.
    explicit result_file(const std::string& path);
    // Without commit() nothing of this object stays.
    ~result_file();
    result_file(const result_file&) = delete;
    result_file& operator=(const result_file&) = delete;

    // Throws std::runtime_error; the file under the name is then what it was.
    void commit(const std::string& text);

  private:
    [[noreturn]] void fail(const char* doing) const;

    std::string asked_;     // as the user wrote it, for messages
    std::string target_;    // symbolic links resolved
    std::string temporary_; // "" when written in place
    int fd_ = -1;
};

} // namespace obase::tools
