// SPDX-License-Identifier: MIT
//
// For tests: a server without a network, whose commands are called and whose collector acts only when asked.
// The environment of the tests starts it (keyspace_test.cpp).
#pragma once

#include "crestdb/server/instance.hpp"

#include <obase/options.hpp>
#include <obase/runtime.hpp>

#include <gtest/gtest.h>

#include <sys/uio.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace crestdb::server {

// A server without a network.
struct served {
    settings options;
    instance server{options};
    session client{1, "test:0", "test:0", -1};

    served() {
        client.authenticated = true;
        update_now();
    }
    ~served() { server.end(client); }

    std::string operator()(const std::vector<std::string>& words) {
        const std::vector<std::string_view> args(words.begin(), words.end());
        output out;
        server.execute(client, args, out);
        std::string text;
        while (!out.empty()) {
            iovec pieces[8];
            const std::size_t n = out.pieces(pieces, 8);
            std::size_t bytes = 0;
            for (std::size_t i = 0; i < n; ++i) {
                text.append(static_cast<const char*>(pieces[i].iov_base), pieces[i].iov_len);
                bytes += pieces[i].iov_len;
            }
            out.sent(bytes);
        }
        return text;
    }
    void window() {
        ASSERT_EQ(managing_runtime().collect_now(), obase::collect_result::done);
        server.tick();
    }
    std::string directory() {
        options.directory = testing::TempDir() + "crestdb-" + std::to_string(::getpid());
        std::filesystem::create_directories(options.directory);
        return options.directory;
    }
};

} // namespace crestdb::server
