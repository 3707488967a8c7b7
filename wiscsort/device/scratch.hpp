// SPDX-License-Identifier: MIT
//
// Unnamed files for what does not fit in memory: runs, and inputs that are pipes. They have no name at
// any time, so nothing is left whenever and however the process ends.
#pragma once

#include "wiscsort/device/calls.hpp"

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace wiscsort::device {

// Bytes of a file seen as memory, to be read.
class mapped_bytes {
  public:
    mapped_bytes() = default;
    mapped_bytes(char* data, std::size_t size) : data_(data), size_(size) {}
    ~mapped_bytes() { unmap(data_, size_); }
    mapped_bytes(mapped_bytes&& other) noexcept : data_(other.data_), size_(other.size_) {
        other.data_ = nullptr;
    }
    mapped_bytes& operator=(mapped_bytes&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    const char* data() const { return data_; }

  private:
    char* data_ = nullptr;
    std::size_t size_ = 0;
};

// An unnamed file whose space is allocated before it is written.
class scratch_file {
  public:
    scratch_file(descriptor fd, std::string directory, bool direct);
    // Throws error with the directory's name: no space, I/O error.
    void reserve(std::uint64_t offset, std::uint64_t size);
    void write(std::uint64_t offset, const char* from, std::size_t size);
    void read(std::uint64_t offset, char* to, std::size_t size) const;
    // The first `size` bytes. Throws error.
    mapped_bytes map(std::size_t size) const;
    int fd() const { return fd_.get(); }
    const std::string& directory() const { return directory_; }
    // True if aligned transfers bypass the page cache.
    bool direct() const { return static_cast<bool>(direct_); }

  private:
    descriptor fd_, direct_;
    std::string directory_;
};

class scratch_space {
  public:
    // The directories are used in turn. Throws nothing; open() does.
    explicit scratch_space(std::vector<std::string> directories)
        : directories_(std::move(directories)) {}
    // Throws error: the directory is missing, not writable, out of descriptors.
    scratch_file open(bool direct);

  private:
    std::vector<std::string> directories_;
    std::size_t next_ = 0;
};

// Transfers of `size` bytes that bypass the page cache where offset and address allow it: `direct` for
// the aligned middle, `buffered` for the rest. direct may be -1. Returns 0 or an errno.
int write_mostly_direct(int buffered, int direct, const char* from, std::size_t size,
                        std::uint64_t offset);
std::int64_t read_mostly_direct(int buffered, int direct, char* to, std::size_t size,
                                std::uint64_t offset);
// A second descriptor of the same file that bypasses the page cache; none where that is impossible.
descriptor open_direct(int fd, int flags);
// How many descriptors the process may open beyond those it has open now and `kept` more; 0 if that is not
// known.
std::uint64_t spare_descriptors(std::uint64_t kept);

} // namespace wiscsort::device
