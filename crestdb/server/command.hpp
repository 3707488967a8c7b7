// SPDX-License-Identifier: MIT
//
// What a command is, and what it is given.
//
// A command's row says how many arguments it takes, which of them are keys, and what it may do. The
// dispatcher (dispatch.cpp) takes the locks of the parts that the keys are in, opens a scope, and calls
// run(): so run() sees the keys as if it were alone, and addresses of records are good until it
// returns.
#pragma once

#include "crestdb/server/keyspace.hpp"
#include "crestdb/server/reply.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crestdb::server {

class instance;
class session;
struct command;

using arguments = std::span<const std::string_view>;

// What another thread has found for a request that would wait for the disk again and again.
struct gathered {
    std::vector<std::string> keys; // of KEYS; at most one of RANDOMKEY
    std::string failure;           // of SAVE; "": it is written
    bool complete = false;
};

struct call {
    instance& server;
    keyspace& keys;
    session& client;
    const command& what;
    arguments args; // args[0] is the command's name
    reply& out;
    const keyspace::part_set& held;

    keyspace::key_id id(std::size_t argument) const noexcept;
};

struct command {
    enum flag : std::uint32_t {
        writes = 1,
        reads = 2,
        deny_oom = 4,
        fast = 8,
        admin = 16,
        no_auth = 32,    // before authentication
        not_queued = 64, // runs at once inside of MULTI
        all_parts = 128, // holds all locks
        not_in_multi = 256,
        own_locks = 512, // takes locks itself, one at a time
        family = 1024,   // has subcommands
    };

    std::string_view name;
    int arity; // as Redis: with the name; negative: at least
    std::uint32_t flags;
    int first_key, last_key, step; // 0: none; last_key negative: from the end
    std::string_view group;
    void (*run)(call&);

    bool is(flag f) const noexcept { return (flags & f) != 0; }
    bool takes(std::size_t n) const noexcept {
        return arity >= 0 ? n == static_cast<std::size_t>(arity)
                          : n >= static_cast<std::size_t>(-arity);
    }
};

struct command_counters {
    std::atomic<std::uint64_t> calls{0}, microseconds{0}, failed{0}, rejected{0};
};

// All commands, in the order of their names.
std::span<const command> all_commands() noexcept;
// null: there is none. In any case of letters.
const command* find_command(std::string_view name) noexcept;
command_counters& counters_of(const command& c) noexcept;
std::vector<std::size_t> key_positions(const command& c, std::size_t arguments);

// Each file of commands gives its rows.
std::span<const command> string_commands() noexcept;
std::span<const command> key_commands() noexcept;
std::span<const command> hash_commands() noexcept;
std::span<const command> sorted_set_commands() noexcept;
std::span<const command> server_commands() noexcept;
std::span<const command> transaction_commands() noexcept;

// Replies that several files need.
namespace answer {
inline constexpr std::string_view syntax = "ERR syntax error";
inline constexpr std::string_view not_an_integer = "ERR value is not an integer or out of range";
inline constexpr std::string_view not_a_float = "ERR value is not a valid float";
inline constexpr std::string_view wrong_type =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view no_such_key = "ERR no such key";
inline constexpr std::string_view overflow = "ERR increment or decrement would overflow";
inline constexpr std::string_view not_finite = "ERR increment would produce NaN or Infinity";
inline constexpr std::string_view out_of_memory =
    "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr std::string_view no_memory = "OOM the server could not get memory for this";
void wrong_arity(reply& out, std::string_view command_name);
void unknown_subcommand(call& c);
} // namespace answer

// The record of a key that is to be read; counts a hit or a miss.
record* find_to_read(call& c, const keyspace::key_id& id);

// SCAN, HSCAN and ZSCAN: MATCH and COUNT behind the cursor at args[cursor]; false: an error was sent.
struct scan_request {
    std::uint64_t cursor = 0;
    std::int64_t count = 10;
    std::string_view match; // empty: all
    bool has_match = false;
    std::string_view type;
    bool has_type = false;
};
bool parse_cursor(call& c, std::size_t cursor, scan_request& into);
bool parse_scan_options(call& c, std::size_t cursor, bool with_type, scan_request& into);

// EX, PX, EXAT and PXAT. `at` gets Unix milliseconds. False: an error was sent.
bool parse_expiry(call& c, std::string_view amount, bool seconds, bool absolute, std::int64_t& at);

} // namespace crestdb::server
