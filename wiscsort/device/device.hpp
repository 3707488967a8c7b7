// SPDX-License-Identifier: MIT
//
// What a strategy does its work on: threads, transfers and time. There are two kinds. On the real one
// threads are threads, transfers are counted (the system calls are what takes time), and time is the
// clock's. On an emulated one (device/emulated.hpp) the data is moved just the same, but time is
// virtual: a transfer takes as long as a BRAID profile says.
//
// So strategies are written once. They (1) fork and join threads by parallel() only, and wait for each
// other in no other way, (2) tell every transfer by a stream, and (3) tell processor time by work().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace wiscsort::device {

enum class direction { read, write };

// Some requests of one thread in one direction, made together.
struct access {
    direction dir = direction::read;
    std::uint64_t requests = 0;
    std::uint64_t waits = 0; // requests that paid for a granule: the others find their bytes there
    std::uint64_t requested = 0; // bytes that were asked for
    std::uint64_t moved = 0;     // bytes of the granules paid for
    double cost = 0;             // bytes of sequential transfer that take as long
};

struct traffic {
    std::uint64_t requested_read = 0, requested_write = 0;
    std::uint64_t moved_read = 0, moved_write = 0;
};

class device {
  public:
    virtual ~device() = default;
    // Calls body(0) ... body(threads - 1), each once, and returns when all have returned. They run at
    // the same time as far as threads can be had, so none may wait for another one. Rethrows the first
    // exception. Not nested.
    virtual void parallel(unsigned threads, const std::function<void(unsigned)>& body) = 0;
    // Returns when the device has done it.
    virtual void charge(const access& access) = 0;
    // Processor time of the calling thread.
    virtual void work(double seconds) = 0;
    // Seconds since some moment.
    virtual double now() const = 0;
    // True if `moved`, `cost` and work() matter; then the granule and the random share do.
    virtual bool emulated() const = 0;
    virtual std::uint64_t granule() const { return 1; }
    virtual double random_share() const { return 1; }

    traffic counted() const {
        return {requested_read_.load(), requested_write_.load(), moved_read_.load(),
                moved_write_.load()};
    }

  protected:
    void count(const access& a) {
        if (a.dir == direction::read) {
            requested_read_ += a.requested;
            moved_read_ += a.moved;
        } else {
            requested_write_ += a.requested;
            moved_write_ += a.moved;
        }
    }

  private:
    std::atomic<std::uint64_t> requested_read_{0}, requested_write_{0};
    std::atomic<std::uint64_t> moved_read_{0}, moved_write_{0};
};

// The requests of one thread to one file, gathered until flush(). A request pays for the granules that
// the stream has not just paid for. It is contiguous if it begins at most one granule behind the last
// one (what a read-ahead brings along), and costs its bytes then; otherwise it costs its bytes divided
// by the random share.
class stream {
  public:
    stream(device& device, direction dir) : device_(device), emulated_(device.emulated()) {
        access_.dir = dir;
        if (emulated_) {
            granule_ = device.granule();
            random_cost_ = 1 / device.random_share();
        }
    }
    // One request.
    void touch(std::uint64_t offset, std::uint64_t size) {
        access_.requested += size;
        ++access_.requests;
        if (emulated_ && size > 0) pay(offset, size);
    }
    // Part of a scan that threads share: contiguous, whatever this thread did before.
    void sequential(std::uint64_t offset, std::uint64_t size) {
        access_.requested += size;
        ++access_.requests;
        if (!emulated_ || size == 0) return;
        const std::uint64_t bytes = (last(offset, size) - offset / granule_ + 1) * granule_;
        access_.moved += bytes;
        access_.cost += static_cast<double>(bytes);
        ++access_.waits;
        paid_ = last(offset, size) + 1;
    }
    void flush() {
        if (access_.requests == 0) return;
        device_.charge(access_);
        const direction dir = access_.dir;
        access_ = {};
        access_.dir = dir;
    }

  private:
    std::uint64_t last(std::uint64_t offset, std::uint64_t size) const {
        return (offset + size - 1) / granule_;
    }
    void pay(std::uint64_t offset, std::uint64_t size) {
        const std::uint64_t first = offset / granule_;
        const std::uint64_t end = last(offset, size) + 1;
        // [paid_ - 1] is the last granule paid for.
        const bool contiguous = first + 1 >= paid_ && first <= paid_ + 1;
        const std::uint64_t from = contiguous && first < paid_ ? paid_ : first;
        if (from >= end) return;
        const std::uint64_t bytes = (end - from) * granule_;
        access_.moved += bytes;
        ++access_.waits;
        access_.cost += static_cast<double>(bytes) * (contiguous ? 1 : random_cost_);
        paid_ = end;
    }

    device& device_;
    bool emulated_;
    access access_;
    std::uint64_t granule_ = 1;
    double random_cost_ = 1;
    std::uint64_t paid_ = 0; // behind the last granule paid for
};

// Threads, the clock, and counters.
class real_device : public device {
  public:
    void parallel(unsigned threads, const std::function<void(unsigned)>& body) override;
    void charge(const access& access) override { count(access); }
    void work(double) override {}
    double now() const override;
    bool emulated() const override { return false; }
};

} // namespace wiscsort::device
