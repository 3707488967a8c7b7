// SPDX-License-Identifier: MIT
//
// server::settings: everything that the command line, crestdb.conf and CONFIG SET can say.
//
// The file has the names of the command line: `maxmemory = 1gb`. The fields that CONFIG SET may change while
// threads run are atomic, or guarded by `lock`.
#pragma once

#include "crestdb/server/keyspace.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace crestdb::server {

struct settings {
    // Where clients come from.
    std::vector<std::string> bind{"127.0.0.1"};
    unsigned port = 6379; // 0: no TCP
    std::string unix_socket;
    unsigned unix_socket_mode = 0700;
    unsigned threads = 0; // 0: one for two processors
    unsigned backlog = 511;
    unsigned metrics_port = 0; // 0: none

    // obase.
    std::string memory = "cgroup";
    std::string cold = "anon";
    std::string hints = "none";
    unsigned cold_threads = 16; // 1 to 256
    std::string protocol = "arming";
    std::string policy = "papers";
    std::string mode;
    double window_seconds = 120;

    // Snapshots.
    std::string directory = ".";
    std::string snapshot = "dump.crestdb";
    bool load_snapshot = true;
    bool save_at_shutdown = false;

    std::string pid_file;
    std::string log_file;

    // Changed while the server runs.
    std::atomic<std::int64_t> maxmemory{0}; // 0: none
    std::atomic<eviction> policy_of_eviction{eviction::none};
    std::atomic<std::size_t> max_clients{10000};
    std::atomic<std::int64_t> timeout_seconds{0};
    std::atomic<std::size_t> max_bulk{512u << 20};
    std::atomic<std::size_t> query_buffer_limit{1u << 30};
    std::atomic<std::size_t> output_buffer_limit{1u << 30};
    std::atomic<std::int64_t> slowlog_slower_than{10000};
    std::atomic<std::size_t> slowlog_max{128};
    std::atomic<std::int64_t> latency_threshold{0};
    std::atomic<bool> active_expire{true};

    std::string password() const {
        const std::lock_guard hold(lock_);
        return password_;
    }
    void set_password(std::string password) {
        const std::lock_guard hold(lock_);
        password_ = std::move(password);
        has_password_ = !password_.empty();
    }
    bool has_password() const noexcept { return has_password_; }

    // CONFIG SET. "" or why not.
    std::string set(std::string_view name, std::string_view value);
    // CONFIG GET: all parameters with their values as text.
    std::vector<std::pair<std::string, std::string>> all() const;

  private:
    mutable std::mutex lock_;
    std::string password_;
    std::atomic<bool> has_password_{false};
};

// "100", "1kb" (1024), "1k" (1000), "1GB", "1G": as redis.conf has it, in capitals or not.
std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

// Reads the command line, and the file it names. Exits with 2 and a message if it is not understood,
// with 0 after --help and --version.
void parse_command_line(int argc, char** argv, settings& into);

} // namespace crestdb::server
