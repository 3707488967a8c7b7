// SPDX-License-Identifier: MIT
//
// server::instance: one server: its keys, its settings, who is connected, what happened so far; and
// execute(), which runs one request.
//
// What the network (network.hpp) needs to be told goes through `to_network`: the instance itself knows
// no sockets, so tests run commands without any.
//
// Threads: execute() by any I/O thread, for sessions of its own; the rest as said.
#pragma once

#include "crestdb/server/command.hpp"
#include "crestdb/server/keyspace.hpp"
#include "crestdb/server/reply.hpp"
#include "crestdb/server/session.hpp"
#include "crestdb/server/settings.hpp"
#include "crestdb/server/window_times.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace crestdb::server {

class instance {
  public:
    explicit instance(settings& its_options);
    ~instance();
    instance(const instance&) = delete;
    instance& operator=(const instance&) = delete;

    // Runs one request and writes its reply. Never throws: out of memory is an error reply.
    void execute(session& client, arguments args, output& out);
    // Ends what the session holds (watches).
    void end(session& client);

    settings& options;
    keyspace keys;
    std::atomic<bool> no_save{false}; // SHUTDOWN NOSAVE was asked for
    // The server is to stop: save() ends its child and removes what that has written. Set by the network, from a signal
    // handler too, and taken back by it when the clients are gone.
    std::atomic<bool> stopping{false};

    // Clients.
    void enter(session& client);
    void leave(session& client);
    std::mutex& clients_lock() noexcept { return clients_lock_; }
    // Under clients_lock().
    const std::map<std::uint64_t, session*>& clients() const noexcept { return clients_; }
    std::uint64_t next_client_id() noexcept { return ++last_id_; }

    // Snapshots (snapshot.hpp). "" or why not.
    // Written by a child, too, for which the calling thread waits: others are served meanwhile, and data that
    // the device cannot read ends the child. "" or why there is no snapshot. While `stopping` there is none.
    std::string save();
    std::string begin_background_save();
    // By the timer: looks whether the child of a BGSAVE has ended.
    void reap_background_save();
    bool saving() const noexcept { return child_ != 0 || saves_; }
    // Ends a background save, for a shutdown.
    void abandon_background_save();
    std::string snapshot_path() const;

    // What happened, for INFO.
    std::atomic<std::uint64_t> connections{0}, rejected_connections{0}, commands{0};
    std::atomic<std::uint64_t> bytes_in{0}, bytes_out{0};
    std::atomic<std::uint64_t> closed_for_output{0}, closed_for_input{0};
    std::atomic<std::uint64_t> cold_reads{0}, cold_read_errors{0};
    std::atomic<std::int64_t> last_save_seconds;
    std::atomic<bool> last_save_ok{true};
    std::atomic<std::int64_t> peak_used{0};
    const std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
    const std::int64_t started_seconds;
    const std::string run_id;

    window_times windows; // of the collector
    // By the timer, ten times a second: the collector's window, memory, and, if asked, what has expired.
    void tick(bool expires = true);

    struct slow_command {
        std::uint64_t id;
        std::int64_t when, microseconds;
        std::vector<std::string> args;
        std::string client, name;
    };
    struct latency_sample {
        std::int64_t when, milliseconds;
    };
    std::mutex log_lock;
    std::deque<slow_command> slow; // newest first; under log_lock
    std::uint64_t slow_ids = 0;    // under log_lock
    std::map<std::string, std::deque<latency_sample>, std::less<>> latencies; // under log_lock
    void note_latency(std::string_view event, std::int64_t milliseconds);

    // Set by the network.
    std::function<void(bool save)> stop_requested;
    std::function<void(const session&)> kill;
    // What commands read that no thread of the reader has looked at; null: nothing may leave, or there is no reader.
    std::function<cold_memory*()> cold = [] { return nullptr; };

    // Names of sections in small letters; none: the usual ones. Each once.
    std::string info(const std::vector<std::string>& sections);
    std::string metrics();
    void log(std::string_view message) const;

  private:
    friend void run_exec(call& c);
    void run_one(session& client, const command& what, arguments args, reply& out,
                 const keyspace::part_set* held);
    bool room_for(const command& what);
    void enqueue(session& client, const command& what, arguments args, reply& out);
    void note_time(session& client, const command& what, arguments args, std::int64_t microseconds);

    mutable std::mutex clients_lock_;
    std::map<std::uint64_t, session*> clients_;
    std::atomic<std::uint64_t> last_id_{0};
    // With save_lock_: a child that writes a snapshot and says into `tell`, if that is one, what became of it.
    // -1: errno says why there is none.
    pid_t fork_writer(const std::string& path, int tell, std::int64_t& dirty);
    // Here, where there can be no child.
    std::string save_here();

    std::mutex save_lock_;
    std::atomic<bool> saves_{false}; // save() runs
    std::atomic<int> child_{0};
    std::int64_t child_dirty_ = 0;
    std::atomic<std::int64_t> child_since_{0};
};

} // namespace crestdb::server
