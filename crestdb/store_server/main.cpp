// SPDX-License-Identifier: MIT
//
// crestdb-store: one of CrestDB's indexes, for the clients of Redis on this machine (store_server.hpp). What obase does
// meanwhile is said by its variables (docs/options.md).
//
// Exit status: 0 stopped by SIGTERM or SIGINT; 1 it could not start; 2 the command line was not understood.
#include "crestdb/store_server/store_server.hpp"

#include <obase/options.hpp>
#include <obase/runtime.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

namespace crestdb {
namespace {

int run(int argc, char** argv) {
    store_options wanted{.index = "chained-hash-table"};
    store_server_options how{.port = 7379};
    CLI::App app("One of CrestDB's indexes, for the clients of Redis on this machine",
                 "crestdb-store");
    app.add_option("--index", wanted.index, "which one")
        ->check(CLI::IsMember(store::indexes()))
        ->capture_default_str();
    app.add_option("--protocol", wanted.protocol, "none: plain pointers; arming, atc: objects move")
        ->check(CLI::IsMember(store::protocols()))
        ->capture_default_str();
    app.add_option("--expected-keys", wanted.expected_keys, "hash tables take their size from it")
        ->check(CLI::Range(1ul, 1ul << 40))
        ->capture_default_str();
    app.add_option("--port", how.port, "of 127.0.0.1; 0: one that the system chooses")
        ->check(CLI::Range(0, 65'535))
        ->capture_default_str();
    app.add_option("--threads", how.threads, "of the server")
        ->check(CLI::Range(1, 256))
        ->capture_default_str();
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    // Before any thread, so that all of them leave these to sigwait().
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
    if (wanted.protocol != "none") {
        obase::runtime& runtime = store::runtime_of(wanted.protocol);
        std::string why = runtime.configure(obase::options::from_environment());
        if (why.empty()) why = runtime.start();
        if (!why.empty()) throw std::runtime_error(why);
    }
    const auto db = store::open(wanted);
    how.index = wanted.index;
    store_server server(*db, how);
    server.start();
    fmt::print("{} of about {} keys under {}, 127.0.0.1 port {}\n", wanted.index,
               wanted.expected_keys, wanted.protocol, server.port());
    std::fflush(stdout);
    int ended_by = 0;
    ::sigwait(&ends, &ended_by);
    server.stop();
    return 0;
}

} // namespace
} // namespace crestdb

int main(int argc, char** argv) {
    try {
        return crestdb::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "crestdb-store: {}\n", error.what());
        return 1;
    }
}
