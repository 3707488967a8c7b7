// SPDX-License-Identifier: MIT
//
// The clients of `obase bench m2t --transport tcp`: one thread, some connections, on each of which one request at a time
// is under way. Every reply is compared with what it must be.
//
//     table_client clients({.port = server.port(), .connections = 16, .records = records, .value = value});
//     clients.ask(requests);
//
// A read-modify-write is a GET and, behind its reply, a SET. A record that the requests themselves insert may be
// absent when it is read: its SET may be under way on another connection. (Which of two is first is not ordered.)
//
// Threads: one at a time.
#pragma once

#include "tools/workload/ycsb_mix.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace obase::tools {

struct table_request {
    workload::operation what;
    std::uint64_t id;
};

struct table_client_settings {
    unsigned port = 0; // of 127.0.0.1
    unsigned connections = 16;
    std::uint64_t records = 0; // with lower numbers than this are there
    std::string value;         // of each record
};

class table_client {
  public:
    explicit table_client(table_client_settings settings) : settings_(std::move(settings)) {}

    // Returns when all are answered. Throws std::runtime_error for another reply than expected, a connection that ends, or
    // none within a minute; interruption.
    void ask(std::span<const table_request> requests) const;

  private:
    table_client_settings settings_;
};

} // namespace obase::tools
