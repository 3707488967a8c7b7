// SPDX-License-Identifier: MIT
//
// server::cold_reader: brings data that has left memory back before the request that wants it runs, so
// that other clients of the I/O thread do not wait for the disk.
//
// Before a request runs, the I/O thread looks whether what it will touch is resident (cold_look.hpp): the
// records of keys, the fields and members that it names or comes across, and for EXEC those of all
// its commands. If something is not, or there is more than the I/O thread should look at, the request is put
// aside; a thread of the reader looks at all of it, in steps, and has the kernel read what is not there,
// holding no lock; then the request runs. Of a request of one key and few words the I/O thread begins the read itself, and no
// thread waits for it (begun_reads.hpp), unless it takes long or fails. What comes across more than may be resident at once, KEYS, RANDOMKEY
// and SAVE, is done by such a thread, and the I/O thread sends what it found.
//
// What may read much (takes_long) has half of the threads at most, and KEYS and expiry give their thread back after
// each slice; the others, HGETALL for one, have it until all is read. So a request of few keys waits for others of few
// keys only. After 16 of those in a row a long one begins all the same, if it may: else it would wait for as long as
// they come. SAVE counts as one of few keys, and has a thread for as long as its child writes; there is one at a time.
//
// The same threads remove keys that have ended, and evict keys for requests that need room: both touch
// what nobody has asked for in a long time.
//
// At work only where memory leaves (--hints pageout).
//
// Threads: look() and read() by any I/O thread. A waiter is called by a thread of the reader.
#pragma once

#include "crestdb/server/cold_memory.hpp"
#include "crestdb/server/command.hpp"
#include "crestdb/server/settings.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace crestdb::server {

class cold_reader {
  public:
    // Who waits for data. It is made before the wait, so that its end needs no memory.
    class waiter {
      public:
        virtual ~waiter() = default;
        // The data is there, or, where not `readable`, the device has an error. Owns itself from now on.
        virtual void is_here(std::unique_ptr<waiter> self, bool readable) noexcept = 0;
        // Of a request that is `apart`, for session::found.
        gathered found;
    };
    // What a request waits for.
    struct wanted {
        struct part {
            const command* what;
            unsigned database;
            std::vector<std::string> args; // without the values
        };
        std::vector<part> parts;
        bool room = false;  // for what it writes
        bool apart = false; // its one part is done by the reader: KEYS, RANDOMKEY, SAVE
        // The read of these may be begun instead; then the request is looked at again. `parts` is empty.
        page_range pages{nullptr, 0};
    };

    // save(): a snapshot; "" or why there is none.
    cold_reader(keyspace& keys, const settings& options, std::unique_ptr<cold_memory> memory,
                std::function<std::string()> save)
        : keys_(keys), options_(options), memory_(std::move(memory)), save_(std::move(save)) {}
    ~cold_reader() { stop(); }
    cold_reader(const cold_reader&) = delete;
    cold_reader& operator=(const cold_reader&) = delete;

    void start(unsigned threads);
    void stop();
    bool is_at_work() const noexcept { return !threads_.empty(); }
    // For what is read by the I/O thread itself; null: nothing may leave.
    cold_memory* memory() const noexcept {
        return memory_->any_may_leave() ? memory_.get() : nullptr;
    }
    // By the timer.
    void refresh() noexcept { memory_->refresh(); }
    // By the timer: keys that have ended are removed by a thread of the reader. Throws std::bad_alloc; the next
    // call tries again.
    void expire();

    // What the request has to wait for; nothing: it can run now. Throws std::bad_alloc.
    // `begun`: a read may be begun, instead of waited for by a thread of the reader. `*begun` are the pages of the last
    // one, which were there when this thread looked, or nothing.
    std::optional<wanted> look(const session& client, arguments args,
                               const page_range* begun = nullptr);
    // Calls the waiter when it is there. False: never, for the server stops. Throws std::bad_alloc.
    bool read(wanted what, std::unique_ptr<waiter> who);

    // What a thread of the reader does for a request. False: the device could not read it.
    bool read_now(const wanted& what, gathered& found);

  private:
    struct job {
        wanted what;
        std::unique_ptr<waiter> who; // null: expire
        std::uint64_t at = 0;        // where the next slice goes on, of KEYS; keys that have ended
        bool readable = true;
    };
    void work() noexcept;
    // A slice of it. False: there is more.
    bool do_some(job& it);
    bool read_some(const wanted& what, gathered& found, std::uint64_t& at, bool& readable);
    bool needs_room(const command& what) const;
    bool gather(const wanted::part& its, gathered& found, std::uint64_t& at);
    void read_parts(const wanted& what, bool& readable);

    keyspace& keys_;
    const settings& options_;
    std::unique_ptr<cold_memory> memory_;
    std::function<std::string()> save_;
    std::mutex lock_;
    std::condition_variable wake_;
    std::list<job> jobs_, long_jobs_; // under lock_, as the following three
    static constexpr unsigned most_few_in_a_row = 16;
    unsigned long_at_work_ = 0, most_long_ = 1, few_in_a_row_ = 0;
    std::atomic<bool> stopping_{false}; // written under lock_
    std::atomic<bool> expiring_{false};
    std::vector<std::thread> threads_;
};

} // namespace crestdb::server
