// SPDX-License-Identifier: MIT
//
// crestdb::store_server: a store for the clients of Redis, on this machine: the key-value server of M2T (Aboytes and
// Mehra, section III.C) over any of CrestDB's indexes.
//
//     const auto db = crestdb::store::open({.index = "chained-hash-table", .expected_keys = 1'000'000});
//     crestdb::store_server server(*db, {.port = 7379, .threads = 2});
//     server.start();                                          // redis-cli -p 7379 set k v
//     ...
//     server.stop();
//
// For measuring indexes and placements through sockets. What a cache server needs besides (expiry, eviction,
// snapshots, transactions, a budget of memory, cold reads that nobody else waits for) is crestdb's
// (crestdb/server/), whose table is its own. Both read requests by one parser.
//
// Requests: GET, SET (a key and a value), DEL, UNLINK, EXISTS, MGET, STRLEN, PING, ECHO, DBSIZE, INFO, QUIT; COMMAND
// and CONFIG GET have an empty array as reply, CLIENT and SELECT 0 have OK, for the sake of clients that begin with them. RESP2.
//
// A connection's requests are answered in their order, each by itself: MGET is no snapshot. Errors are replies: a
// request that is not understood, of the wrong arity, or for which there is no memory. Malformed frames end the connection
// behind an error reply.
//
// Memory for a connection: what is left of a request, at most `most_value_bytes` and 64 KiB; replies beyond a MiB make its further
// requests wait until the client has read.
//
// Threads: start() and stop() by one; stop() also without start(). Each thread of the server has an event loop
// (libevent) and connections of its own. The store must outlive the server.
#pragma once

#include "crestdb/store.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace crestdb {

struct store_server_options {
    unsigned port = 0;                        // of 127.0.0.1; 0: one that the system chooses
    unsigned threads = 1;                     // 1 to 256
    std::size_t most_value_bytes = 64u << 20; // of a request's largest argument
    std::string index = "";                   // its name, for INFO
};

class store_server {
  public:
    // Opens the port. Throws std::runtime_error, naming it and the reason.
    store_server(store& serves, const store_server_options& options);
    // As stop().
    ~store_server();
    store_server(const store_server&) = delete;
    store_server& operator=(const store_server&) = delete;

    unsigned port() const noexcept;
    // Serves in threads of its own until stop(). Throws std::system_error; nothing runs then.
    void start();
    // Ends threads and connections; those that were not accepted yet when the server is destroyed. Replies that were
    // not sent are lost.
    void stop() noexcept;
    // Processor time of its threads since start(). Between start() and stop().
    double cpu_seconds() const noexcept;

  private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace crestdb
