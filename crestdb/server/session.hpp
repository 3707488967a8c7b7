// SPDX-License-Identifier: MIT
//
// server::session: what the server knows of one client, apart from its bytes.
//
// A session belongs to the I/O thread of its connection. CLIENT LIST and CLIENT KILL of other clients
// read it under the lock of the register of sessions; what they read is const, atomic, or written under
// that lock.
#pragma once

#include "crestdb/server/keyspace.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

namespace crestdb::server {

struct command;
struct gathered;

class session {
  public:
    session(std::uint64_t its_id, std::string its_address, std::string its_local,
            int its_descriptor)
        : id(its_id), address(std::move(its_address)), local(std::move(its_local)),
          descriptor(its_descriptor) {}

    const std::uint64_t id;
    const std::string address, local;
    const int descriptor;
    const std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();

    std::atomic<unsigned> database{0};
    std::atomic<int> protocol{2};
    bool authenticated = false;

    // A transaction: MULTI until EXEC.
    struct queued {
        const command* what;
        std::vector<std::string> args;
    };
    std::atomic<bool> in_multi{false};
    bool multi_failed = false; // a command could not be queued
    std::vector<queued> queue;
    std::size_t queued_bytes = 0;
    std::unordered_set<std::string> watched; // by keyspace::watch_name()
    std::size_t watched_bytes = 0;           // that they take, here and in the keyspace
    watch_flag watch_broken;

    // CLIENT REPLY.
    enum class replies { on, off, skip } reply_mode = replies::on;

    // Set by a command; the connection acts on it.
    bool close_after_reply = false;
    // For the request that runs, or null: it finds it itself.
    const gathered* found = nullptr;

    std::string name; // written under the register's lock
    std::atomic<const command*> last_command{nullptr};
    std::atomic<std::int64_t> last_used_ms{0};
    std::atomic<std::size_t> input_bytes{0}, output_bytes{0};
};

} // namespace crestdb::server
