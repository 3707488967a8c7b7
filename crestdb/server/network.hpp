// SPDX-License-Identifier: MIT
//
// server::network: sockets, threads, and the bytes of every connection.
//
// Each I/O thread has an event loop (libevent) and connections of its own: it reads, parses, executes and
// writes them, so a request needs no other thread. The first thread also accepts, and hands a connection
// to the thread with the fewest. libevent is used for readiness, timers and signals; buffers are
// ours, because a request and its reply then need one read, one write, and no allocation.
//
// An idle connection has no buffers: requests are parsed where the thread's buffer received them, replies
// gather in the thread's output, and only what is left over is kept with the connection.
//
// A client that does not read its replies is not answered further: while more than a MiB of
// replies waits, its requests wait too, up to client-query-buffer-limit bytes of them, then they are
// not read any more. One reply may be larger, up to client-output-buffer-limit. So the memory of a
// client is bounded by these two, and no other client waits.
//
// Threads: run() blocks; stop() by any thread.
#pragma once

#include <memory>
#include <string>

namespace crestdb::server {

class instance;

class network {
  public:
    explicit network(instance& server);
    ~network();
    network(const network&) = delete;
    network& operator=(const network&) = delete;

    // Opens the sockets. "" or why not.
    std::string listen();
    // The TCP port in use, for port 0 that the system chose.
    unsigned port() const noexcept;
    // Serves until stop(), SIGTERM or SIGINT. Replies that are ready are sent before it returns.
    void run();
    void stop();

  private:
    struct state;
    std::unique_ptr<state> state_;
};

} // namespace crestdb::server
