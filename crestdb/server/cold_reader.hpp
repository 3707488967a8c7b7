// SPDX-License-Identifier: MIT
//
// server::cold_reader: brings data that has left memory back before the request that wants it runs, so
// that other clients of the I/O thread do not wait for the disk.
//
// Before a request runs, the I/O thread looks where its keys' records lie (by their slots, without
// touching them), and asks the kernel whether those in tiers whose memory may leave are resident. If
// some are not, the request is put aside; a thread of the reader has the kernel read the pages
// (MADV_POPULATE_READ, which reports an error of the device where an access would be a fatal signal);
// then the request runs. What the reader is told are addresses and sizes, nothing it would access
// itself: if an object moves meanwhile, its old pages were read for nothing, and the request meets
// the disk in its own thread, which is slower and no more wrong.
//
// At work only where memory leaves (--hints pageout). Looked at are the records of keys, and the
// fields that a command on a hash names; not what HGETALL or ZRANGE come across.
//
// Threads: ask() by any I/O thread. `done` is called by a thread of the reader.
#pragma once

#include "crestdb/server/command.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace crestdb::server {

class cold_reader {
  public:
    explicit cold_reader(keyspace& keys) noexcept : keys_(keys) {}
    ~cold_reader() { stop(); }
    cold_reader(const cold_reader&) = delete;
    cold_reader& operator=(const cold_reader&) = delete;

    void start(unsigned threads);
    void stop();
    // By the timer: which tiers there are is known when the collector has begun.
    void refresh() noexcept;
    bool is_at_work() const noexcept { return !threads_.empty(); }

    // True: the request has to wait until done(readable) is called.
    bool ask(const session& client, arguments args, std::function<void(bool)> done);

  private:
    struct range {
        void* begin;
        std::size_t bytes;
    };
    struct job {
        std::vector<range> ranges;
        std::function<void(bool)> done;
    };
    void work();
    void look_at(managed_slot* slot, std::vector<range>& cold);

    keyspace& keys_;
    std::atomic<std::uint32_t> tiers_{0}; // those whose memory may leave
    std::mutex lock_;
    std::condition_variable wake_;
    std::deque<job> jobs_;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

} // namespace crestdb::server
