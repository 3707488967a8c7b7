// SPDX-License-Identifier: MIT
//
// A client of a server that speaks RESP2, over a Unix socket: one connection, one request at a time.
//
//     resp_client client("/run/redis.sock");
//     client.ask({"SET", "k", "v"});                       // "OK"
//     std::optional<std::string> value = client.ask({"GET", "k"});
//
// Threads: one at a time.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace obase::tools {

// A descriptor of a socket that is connected, which the caller closes; -1: errno says why not. A full backlog is
// waited for, some .2 s.
int connect_unix(const std::string& path) noexcept;

class resp_client {
  public:
    // Throws std::runtime_error if nothing listens there.
    explicit resp_client(const std::string& path);
    ~resp_client();
    resp_client(const resp_client&) = delete;
    resp_client& operator=(const resp_client&) = delete;

    // A status, a number or a value; nothing for nil. Throws std::runtime_error for an error, if the server has gone, or
    // for a reply of several parts, which ends the connection.
    std::optional<std::string> ask(std::initializer_list<std::string_view> words);

  private:
    [[noreturn]] void fail(std::string_view what) const;
    void receive();
    std::string read_line();

    std::string path_;
    int socket_;
    std::string buffer_;
};

} // namespace obase::tools
