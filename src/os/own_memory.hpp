// SPDX-License-Identifier: MIT
//
// The process's own memory as the kernel lists it, and files that are only read.
//
// Threads: any. Async-signal-safe: no malloc, no locks. Errors: false, or nothing is visited.
#pragma once

#include <cstddef>
#include <cstdint>

namespace obase::os {

// A private mapping that can be read and written.
struct own_mapping {
    std::uintptr_t begin;
    std::uintptr_t end;
    bool is_file;     // of a program or library: its variables
    const char* name; // as in /proc/self/maps: "", "[heap]", "[stack]", a path
};
// visit(context, mapping) for each, in the order of their addresses.
void for_each_writable_mapping(void (*visit)(void* context, const own_mapping&),
                               void* context) noexcept;

// Copies memory that other threads may unmap meanwhile. Returns how many bytes could be read.
std::size_t read_own_memory(std::uintptr_t from, void* to, std::size_t bytes) noexcept;

// Which pages of the process hold something: a large mapping may be mostly untouched.
class page_states {
  public:
    page_states() noexcept;
    ~page_states();
    page_states(const page_states&) = delete;
    page_states& operator=(const page_states&) = delete;

    // The first address from `begin` on, below `end`, in a page that is in memory or in swap; `end`: none.
    // Where the kernel does not say it, `begin`.
    std::uintptr_t first_touched(std::uintptr_t begin, std::uintptr_t end) noexcept;

  private:
    static constexpr std::size_t window = 512;

    int fd_;
    std::uintptr_t first_page_ = 0; // of those in states_
    std::size_t known_ = 0;
    std::uint64_t states_[window];
};

// A file, mapped to be read.
struct mapped_file {
    const char* begin = nullptr;
    std::size_t bytes = 0;
};
bool map_for_reading(const char* path, mapped_file* file) noexcept;
void unmap(const mapped_file& file) noexcept;

// munmap as the program asked for it: its result, and its errno.
int unmap_for_program(void* begin, std::size_t bytes) noexcept;

// A file that is made or emptied, and written as a whole. False: errno says why.
bool write_file(const char* path, const char* text, std::size_t bytes) noexcept;
void write_to_standard_error(const char* text, std::size_t bytes) noexcept;

} // namespace obase::os
