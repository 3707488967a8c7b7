// SPDX-License-Identifier: MIT
//
// Every system call of wiscsort that a file system, a device or the memory can refuse. They retry
// EINTR and go on after short transfers, so callers see all or an error. Tests put a hook before
// each call to make the n-th one fail.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace wiscsort::device {

// What a hook decides about the call that is about to be made.
struct fault {
    int error = 0;        // not 0: the call is not made and fails with this errno
    bool shorten = false; // a transfer moves half of what it could, at least one byte
};
// `call` is the name of the system call; "open unnamed" for files without a name. Called by any thread.
using fault_hook = fault (*)(const char* call);
// Null: none. Not while another thread is in a call.
void set_fault_hook(fault_hook hook);
// What the hook says of a call that is made elsewhere in device/; nothing if there is none.
fault before_call(const char* call);

// A file descriptor that is closed at the end. -1: none.
class descriptor {
  public:
    descriptor() = default;
    explicit descriptor(int number) : number_(number) {}
    ~descriptor() { reset(); }
    descriptor(descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
    descriptor& operator=(descriptor&& other) noexcept {
        if (this != &other) {
            reset();
            number_ = other.number_;
            other.number_ = -1;
        }
        return *this;
    }
    int get() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    void reset();
    int release() {
        const int number = number_;
        number_ = -1;
        return number;
    }

  private:
    int number_ = -1;
};

// These return 0 or an errno, unless said otherwise.
int open_file(const char* path, int flags, mode_t mode, descriptor& out);
int status(int fd, struct stat& out);
// Bytes read, fewer than `size` only at the end of the file; or -errno.
std::int64_t read_at(int fd, void* to, std::size_t size, std::uint64_t offset);
std::int64_t read_some(int fd, void* to, std::size_t size); // 0: the end
int write_at(int fd, const void* from, std::size_t size, std::uint64_t offset);
int write_stream(int fd, const void* from, std::size_t size);
// Space for [offset, offset + size); EOPNOTSUPP where the file system has no such call.
int allocate(int fd, std::uint64_t offset, std::uint64_t size);
int resize(int fd, std::uint64_t size);
int sync_data(int fd);
int sync_all(int fd);
int link_descriptor(int fd, int directory, const char* name);
int rename_in(int directory, const char* from, const char* to);
int unlink_in(int directory, const char* name);
// Address or MAP_FAILED, with errno.
void* map(void* address, std::size_t size, int protection, int flags, int fd, std::uint64_t offset);
void unmap(void* address, std::size_t size);

} // namespace wiscsort::device
