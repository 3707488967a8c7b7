// SPDX-License-Identifier: MIT
//
// The client of the benches against a server of a few fixed replies, however they are cut.
#include "tools/bench/child_process.hpp"
#include "tools/server/resp_client.hpp"
#include "tools/server/servers.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>

namespace obase::tools {
namespace {

// Accepts one client, and answers its n-th request with the n-th reply, a byte at a time; then it closes.
class fixed_server {
  public:
    fixed_server(const std::string& path, std::vector<std::string> replies) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        listens_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        EXPECT_EQ(::bind(listens_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listens_, 1), 0);
        thread_ = std::thread([this, its = std::move(replies)] {
            const int client = ::accept(listens_, nullptr, nullptr);
            for (const std::string& reply : its) {
                char request[4096];
                const ssize_t n = ::recv(client, request, sizeof request, 0);
                if (n <= 0) break;
                asked += std::string_view(request, static_cast<std::size_t>(n));
                for (const char byte : reply) ::send(client, &byte, 1, MSG_NOSIGNAL);
            }
            ::close(client);
        });
    }
    ~fixed_server() {
        join();
        ::close(listens_);
    }
    void join() {
        if (thread_.joinable()) thread_.join();
    }
    std::string asked; // after join()

  private:
    int listens_;
    std::thread thread_;
};

TEST(resp_client, takes_each_kind_of_reply) {
    const scratch_directory scratch;
    const std::string path = scratch.path() + "/s";
    fixed_server server(path, {"+OK\r\n", ":42\r\n", "$6\r\na\r\nb\r\n\r\n", "$0\r\n\r\n",
                               "$-1\r\n", "+PONG\r\n", "-ERR no\r\n", "*1\r\n:1\r\n"});
    resp_client client(path);
    EXPECT_EQ(client.ask({"SET", "k", ""}), "OK");
    EXPECT_EQ(client.ask({"INCR"}), "42");
    EXPECT_EQ(client.ask({"GET"}), "a\r\nb\r\n") << "by its size, whatever is in it";
    EXPECT_EQ(client.ask({"GET"}), "");
    EXPECT_EQ(client.ask({"GET"}), std::nullopt);
    EXPECT_EQ(client.ask({"PING"}), "PONG") << "nothing of the replies before is left";
    EXPECT_THROW(client.ask({"GET"}), std::runtime_error) << "an error";
    EXPECT_THROW(client.ask({"KEYS"}), std::runtime_error) << "several parts";
    EXPECT_THROW(client.ask({"GET"}), std::runtime_error) << "which ends the connection";
    server.join();
    EXPECT_TRUE(server.asked.starts_with("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"))
        << server.asked;
}

TEST(resp_client, says_where_nothing_listens) {
    const scratch_directory scratch;
    EXPECT_THROW(resp_client(scratch.path() + "/nobody"), std::runtime_error);
    EXPECT_EQ(connect_unix("/" + std::string(200, 'x')), -1) << "longer than a socket's name";
}

// What the user has set for obase is not what is measured.
TEST(clean_environment, has_no_settings_of_obase) {
    ::setenv("OBASE_OF_NOBODY", "1", 1);
    const std::vector<std::string> kept = clean_environment();
    EXPECT_FALSE(kept.empty());
    EXPECT_TRUE(std::none_of(kept.begin(), kept.end(),
                             [](const std::string& s) { return s.starts_with("OBASE_"); }));
    const auto output = output_of_program(clean_command({"OBASE_GIVEN=2"}, {"env"}));
    ::unsetenv("OBASE_OF_NOBODY");
    ASSERT_TRUE(output.has_value());
    EXPECT_EQ(output->find("OBASE_OF_NOBODY"), std::string::npos);
    EXPECT_NE(output->find("OBASE_GIVEN=2"), std::string::npos);
}

TEST(cpu_seconds, are_of_the_threads_of_that_name) {
    const double all = cpu_seconds(::getpid());
    EXPECT_GT(all, 0);
    EXPECT_EQ(cpu_seconds(::getpid(), "nobody has this"), 0);
}

} // namespace
} // namespace obase::tools
