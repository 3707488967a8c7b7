// SPDX-License-Identifier: MIT
//
// The output: an unnamed file in the directory of OUT, whose space is allocated before anything is
// written, and which takes OUT's name when it is complete. A process that ends before leaves nothing;
// one that ends between the two last steps (link, rename) leaves the finished file under the name
// .OUT.wiscsort-new, which the next run to OUT removes.
//
// OUT that is no regular file (a pipe, a terminal, /dev/null) is written in order, as it is.
// A symbolic link is followed, permissions of an OUT that is there are kept.
#pragma once

#include "wiscsort/device/calls.hpp"

#include <cstdint>
#include <string>

namespace wiscsort::device {

class output_file {
  public:
    // "-" is the standard output. Throws error: a directory, not writable, no such directory.
    output_file(const std::string& name, bool direct);
    ~output_file();
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;

    // Writes must follow each other from offset 0 on, by one thread at a time.
    bool sequential() const { return stream_; }
    bool direct() const { return static_cast<bool>(direct_); }
    // Throws error where there is no room.
    void reserve(std::uint64_t size);
    // Any thread, disjoint ranges. Throws error.
    void write(std::uint64_t offset, const char* from, std::size_t size);
    // The file gets its final size and name. `sync`: it is on the device, and so is its name, before
    // this returns. Throws error; OUT is then what it was.
    void publish(std::uint64_t size, bool sync);
    int fd() const { return fd_.get(); }

  private:
    void open_unnamed();
    [[noreturn]] void failed(const char* doing, int problem) const;

    std::string asked_;            // as the user wrote it
    std::string directory_, base_; // of the file that is replaced, symbolic links resolved
    std::string beside_;           // the name between link and rename
    descriptor folder_, fd_, direct_;
    bool stream_ = false;
    bool named_ = false; // the file system has no unnamed files: fd_ is `beside_` already
    std::uint64_t reserved_ = 0, written_ = 0;
};

} // namespace wiscsort::device
