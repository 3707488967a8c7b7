// SPDX-License-Identifier: MIT
//
// The input: files one after the other in one space of *positions*. Each file begins at a multiple of
// the page size, so that all of them can be mapped into one region, and a record's position is its
// distance from the region's beginning. What cannot be mapped (a pipe, a terminal, a file of /proc) is
// copied to an unnamed temporary file first.
//
// A file that is cut or written while it is read makes the sort fail, not the output wrong: the size
// and times of every file are compared at the end, and a page that a mapping no longer has (SIGBUS)
// ends the program with a message (see guard_mappings()).
#pragma once

#include "wiscsort/device/calls.hpp"
#include "wiscsort/device/scratch.hpp"
#include "wiscsort/format/entry.hpp"
#include "wiscsort/format/record_format.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace wiscsort::device {

struct input_file {
    std::string name;
    descriptor fd, direct;
    std::uint64_t begin = 0; // position of the first byte
    std::uint64_t size = 0;
    bool spooled = false;
    struct stat seen = {};
    std::uint64_t end() const { return begin + size; }
};

class input_set {
  public:
    struct settings {
        record_format format;
        bool mapped = true;
    };
    // Opens all of `names`; "-" is the standard input. Throws error: missing, unreadable, a directory,
    // a size that is no multiple of the record's, more than 2^48 bytes.
    input_set(const std::vector<std::string>& names, const settings& asked, scratch_space& scratch);
    ~input_set();
    input_set(const input_set&) = delete;
    input_set& operator=(const input_set&) = delete;

    const record_format& format() const { return settings_.format; }
    const std::vector<input_file>& files() const { return files_; }
    std::uint64_t bytes() const { return bytes_; }
    // Behind the last position.
    std::uint64_t end() const { return end_; }
    // The mapping: the byte at a position is base()[position]. Null if it was not asked for.
    const char* base() const { return base_; }
    const input_file& file_at(std::uint64_t position) const;
    // Throws error if the file has become shorter, or cannot be read.
    void read(std::uint64_t position, char* to, std::size_t size) const;
    // The record at a position; in `buffer` unless mapped. Throws error. Of a record that is not mapped and larger
    // than `most` only its beginning is read: a view of more than `most` bytes.
    record_view record_at(std::uint64_t position, std::string& buffer,
                          std::uint64_t most = UINT64_MAX) const {
        if (base_ != nullptr) [[likely]] {
            record_view view;
            const std::uint64_t left =
                (files_.size() == 1 ? files_[0].end() : file_at(position).end()) - position;
            if (find_record(settings_.format, base_ + position, left, view) == found::torn)
                torn(position);
            return view;
        }
        return read_record(position, buffer, most);
    }
    // Says which file is torn where, and what was expected. Throws error.
    [[noreturn]] void torn(std::uint64_t position) const;
    // "FILE: offset N" of a position, for messages.
    std::string place(std::uint64_t position) const;
    // Throws error if a file is not what it was when it was opened.
    void verify_unchanged() const;
    // Records of `size` bytes at the entries' positions, one behind the other into `to`: as read(), with many
    // requests in flight, and past the page cache after bypass_cache(). Any thread. Throws error.
    void gather(const entry* entries, std::uint64_t count, std::uint64_t size, char* to) const;
    // read() and gather() bypass the page cache where they can; at most `threads` gather at a time. Not
    // while it is used.
    void bypass_cache(unsigned threads);
    // Share of the input that is in the page cache, from 0 to 1; a sample.
    double cached_share() const;
    // The kernel forgets about read-ahead: what follows is random. No effect if not mapped.
    void expect_random_access() const;

  private:
    // What one gather() at a time needs. They are kept, since a ring takes system calls to make.
    struct gathering;
    std::unique_ptr<gathering> begin_gathering() const;
    record_view read_record(std::uint64_t position, std::string& buffer, std::uint64_t most) const;
    void add(const std::string& name, scratch_space& scratch);
    void map_all();

    settings settings_;
    std::vector<input_file> files_;
    std::vector<scratch_file> spools_;
    std::uint64_t bytes_ = 0, end_ = 0;
    char* base_ = nullptr;
    std::size_t mapped_bytes_ = 0;
    std::uint64_t pages_of_gathering_ =
        0; // bytes of the pages that hold what one gather() has in flight
    mutable std::mutex gatherings_lock_;
    mutable std::vector<std::unique_ptr<gathering>> gatherings_; // not in use
};

// For programs: a fault in a mapped input (the file was cut, or the device failed) prints a message
// with the program's name and ends the process with exit code 1. Process-wide.
void guard_mappings(const char* program);

} // namespace wiscsort::device
