// SPDX-License-Identifier: MIT
//
// Many reads of one thread in flight at a time: records that lie anywhere in a file beyond the page cache.
// By io_uring where liburing was there when this was built and the kernel allows it; elsewhere one after
// the other.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace wiscsort::device {

struct read_request {
    int fd = -1;
    char* to = nullptr;
    std::size_t size = 0;
    std::uint64_t offset = 0;
    std::size_t done = 0; // bytes that came
};

// Of one thread at a time.
class read_batch {
  public:
    static constexpr unsigned most = 64; // in flight

    read_batch();
    ~read_batch();
    read_batch(const read_batch&) = delete;
    read_batch& operator=(const read_batch&) = delete;

    // True if requests are in flight together.
    bool together() const { return ring_ != nullptr; }
    // Begins every request and returns when none is in flight. A request that the kernel refused, cut
    // short or never took has fewer bytes in `done` than its size: read_at() gets the rest, or says why
    // there is none.
    void read(std::span<read_request> requests);

  private:
    struct ring;
    std::unique_ptr<ring> ring_;
};

} // namespace wiscsort::device
