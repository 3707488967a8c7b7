// SPDX-License-Identifier: MIT
//
// That no reply is waited for, and no wait measured, while the client is paused.
#include "tools/fragmentation/reading_client.hpp"
#include "tools/server/servers.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

namespace obase::tools {
namespace {

using namespace std::chrono_literals;

// Answers GET of b:N with the value that the benchmark stores there, or with another one, half a millisecond later.
class slow_server {
  public:
    slow_server(const std::string& path, bool right) : right_(right) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        listens_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::bind(listens_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listens_, 1), 0);
        thread_ = std::thread([this] { serve(); });
    }
    ~slow_server() {
        thread_.join();
        ::close(listens_);
    }
    slow_server(const slow_server&) = delete;
    slow_server& operator=(const slow_server&) = delete;

    std::atomic<std::uint64_t> requests = 0, replies = 0; // a reply is counted before it is sent

  private:
    void serve() {
        const int client = ::accept(listens_, nullptr, nullptr);
        char request[4096];
        for (ssize_t n; (n = ::recv(client, request, sizeof request, 0)) > 0;) {
            ++requests;
            std::this_thread::sleep_for(500us);
            const std::string text(request, static_cast<std::size_t>(n));
            const std::size_t key = text.find("b:") + 2;
            std::string value =
                (right_ ? "value:" : "another") + text.substr(key, text.find("\r\n", key) - key);
            value.resize(reading_client::second_bytes, '.');
            const std::string reply = fmt::format("${}\r\n{}\r\n", value.size(), value);
            ++replies;
            ::send(client, reply.data(), reply.size(), MSG_NOSIGNAL);
        }
        ::close(client);
    }

    bool right_;
    int listens_;
    std::thread thread_;
};

TEST(reading_client, asks_for_nothing_while_it_is_paused) {
    const scratch_directory scratch;
    slow_server server(scratch.path() + "/s", true);
    reading_client client(scratch.path() + "/s", 1000);
    for (int i = 0; i < 50; ++i) {
        const std::uint64_t seen = server.requests;
        while (server.requests == seen) std::this_thread::yield();
        const reading_client::pause paused(client);
        const std::uint64_t requests = server.requests;
        ASSERT_EQ(server.replies, requests) << "a reply is waited for";
        std::this_thread::sleep_for(2ms);
        ASSERT_EQ(server.requests, requests);
    }
    client.finish();
    EXPECT_GE(client.found, 50U);
    EXPECT_EQ(client.found, server.replies);
    EXPECT_EQ(client.wrong, 0U);
    EXPECT_GE(client.longest_us, 500);
}

TEST(reading_client, counts_values_that_are_other_ones) {
    const scratch_directory scratch;
    slow_server server(scratch.path() + "/s", false);
    reading_client client(scratch.path() + "/s", 1000);
    while (server.replies < 10) std::this_thread::yield();
    client.finish();
    EXPECT_EQ(client.wrong, client.found);
    EXPECT_GE(client.wrong, 10U);
}

TEST(reading_client, tells_that_its_server_has_gone) {
    const scratch_directory scratch;
    reading_client client(scratch.path() + "/nobody", 1000);
    {
        const reading_client::pause none(client);
    } // does not wait for who has ended
    EXPECT_THROW(client.finish(), std::runtime_error);
}

} // namespace
} // namespace obase::tools
