// SPDX-License-Identifier: MIT
#include "crestdb/server/cold_memory.hpp"

#include <obase/runtime.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace crestdb::server {

namespace {

constexpr std::uintptr_t page = 4096;

class kernel_view final : public cold_memory {
  public:
    kernel_view() { kernel_view::refresh(); }

    bool any_may_leave() const noexcept override { return tiers_ != 0; }
    bool may_leave(const void* object) const noexcept override {
        const int heap = managing_runtime().heap_of(object);
        return heap >= 0 && (tiers_ >> heap & 1) != 0;
    }
    bool is_resident(const void* begin, std::size_t bytes) const noexcept override {
        constexpr std::size_t looked_at = 64;
        unsigned char resident[looked_at];
        auto at = reinterpret_cast<std::uintptr_t>(begin);
        const std::uintptr_t end = at + bytes;
        for (; at < end; at += looked_at * page) {
            const std::size_t pages = std::min(looked_at, (end - at) / page);
            // Not mapped any more: it has moved, and is found by whoever uses it.
            if (::mincore(reinterpret_cast<void*>(at), pages * page, resident) != 0) return true;
            for (std::size_t i = 0; i < pages; ++i)
                if ((resident[i] & 1) == 0) return false;
        }
        return true;
    }
    bool read_in(void* begin, std::size_t bytes) noexcept override {
        // Faults read one page each, for nothing else is wanted of a file of cold data (MADV_RANDOM); a request
        // for the whole range first makes it one read of the device, or some at once.
        constexpr std::size_t at_once = std::size_t{128} << 10;
        auto* const first = static_cast<char*>(begin);
        for (std::size_t at = 0; at < bytes; at += at_once) {
            const std::size_t some = std::min(at_once, bytes - at);
            if (some > page) ::madvise(first + at, some, MADV_WILLNEED);
            // An error of the device is reported here, where an access would be a fatal signal.
            // ENOMEM: it is not mapped any more, EINVAL: a kernel before 5.14; the request finds out.
            if (::madvise(first + at, some, MADV_POPULATE_READ) != 0)
                return errno != EFAULT && errno != EHWPOISON && errno != EIO;
        }
        return true;
    }
    bool begin_read(void* begin, std::size_t bytes) noexcept override {
        return ::madvise(begin, bytes, MADV_WILLNEED) == 0;
    }
    void refresh() noexcept override {
        if (tiers_ == 0) tiers_ = managing_runtime().statistics().reclaimable_tiers;
    }

  private:
    std::atomic<std::uint32_t> tiers_{0}; // those whose memory may leave
};

} // namespace

std::unique_ptr<cold_memory> kernel_cold_memory() { return std::make_unique<kernel_view>(); }

bool cold_probe::look(const managed_slot& slot, std::size_t first_bytes) {
    if (bounded_) {
        if (!goes_on()) return false;
        --looks_left_;
    }
    void* const object = const_cast<void*>(slot.peek());
    if (!memory_.may_leave(object)) return true;
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    const std::uintptr_t begin = address & ~(page - 1);
    const std::size_t bytes = std::min(managed_size(object), first_bytes);
    const std::uintptr_t end = (address + bytes + page - 1) & ~(page - 1);
    auto* const pages = reinterpret_cast<void*>(begin);
    if (pages == seen_.begin && end - begin == seen_.bytes) return true;
    if (memory_.is_resident(pages, end - begin)) return true;
    noted_.push_back({pages, end - begin});
    return false;
}

void cold_probe::read_noted() noexcept {
    if (bounded_) return;
    for (const page_range& r : noted_) {
        if (given_up_ != nullptr && *given_up_) {
            readable_ = false;
            break;
        }
        if (!memory_.read_in(r.begin, r.bytes)) readable_ = false;
        bytes_read_ += r.bytes;
    }
    noted_.clear();
}

} // namespace crestdb::server
