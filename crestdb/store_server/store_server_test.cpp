// SPDX-License-Identifier: MIT
//
// The server of a store, as its clients see it: over sockets.
#include "crestdb/store_server/store_server.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <fstream>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace crestdb {
namespace {

class client {
  public:
    explicit client(const store_server& of) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(of.port()));
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            throw std::runtime_error("cannot connect");
    }
    ~client() { ::close(socket_); }
    client(const client&) = delete;
    client& operator=(const client&) = delete;

    void send(std::string_view bytes) {
        while (!bytes.empty()) {
            const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) throw std::runtime_error("cannot send");
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    void send_no_more() { ::shutdown(socket_, SHUT_WR); }
    // That many bytes, or fewer if the server has closed the connection.
    std::string receive(std::size_t bytes) {
        std::string all(bytes, '\0');
        std::size_t got = 0;
        while (got < bytes) {
            const ssize_t n = ::recv(socket_, all.data() + got, bytes - got, 0);
            if (n <= 0) break;
            got += static_cast<std::size_t>(n);
        }
        all.resize(got);
        return all;
    }
    std::string receive_all() {
        std::string all;
        for (std::string one; !(one = receive(1)).empty();) all += one;
        return all;
    }
    bool answers(std::string_view request, std::string_view reply) {
        send(request);
        const std::string got = receive(reply.size());
        EXPECT_EQ(got, reply) << "to " << request;
        return got == reply;
    }

  private:
    int socket_;
};

std::string request(const std::vector<std::string>& words) {
    std::string all = "*" + std::to_string(words.size()) + "\r\n";
    for (const std::string& word : words)
        all += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
    return all;
}
std::string bulk(const std::string& value) {
    return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

std::size_t resident_bytes() {
    std::size_t size = 0, resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

class store_server_test : public ::testing::TestWithParam<const char*> {
  protected:
    store_server_test()
        : db(store::open({.index = GetParam(), .protocol = "arming", .expected_keys = 1000})),
          server(*db, {.threads = 2, .most_value_bytes = 2u << 20, .index = GetParam()}) {
        server.start();
    }
    std::unique_ptr<store> db;
    store_server server;
};

TEST_P(store_server_test, answers_every_request) {
    client c(server);
    const std::string binary("a\0\r\n$3", 6);
    c.answers(request({"GET", "k"}), "$-1\r\n");
    c.answers(request({"SET", "k", binary}), "+OK\r\n");
    c.answers(request({"get", "k"}), bulk(binary));
    c.answers(request({"SET", "k", ""}), "+OK\r\n");
    c.answers(request({"GET", "k"}), "$0\r\n\r\n");
    c.answers(request({"SET", "other", "12345"}), "+OK\r\n");
    c.answers(request({"STRLEN", "other"}), ":5\r\n");
    c.answers(request({"STRLEN", "none"}), ":0\r\n");
    c.answers(request({"MGET", "k", "none", "other"}), "*3\r\n$0\r\n\r\n$-1\r\n$5\r\n12345\r\n");
    c.answers(request({"EXISTS", "k", "none", "other", "k"}), ":3\r\n");
    c.answers(request({"DBSIZE"}), ":2\r\n");
    c.answers(request({"DEL", "k", "none"}), ":1\r\n");
    c.answers(request({"UNLINK", "k", "other"}), ":1\r\n");
    c.answers(request({"DBSIZE"}), ":0\r\n");
    c.answers(request({"PING"}), "+PONG\r\n");
    c.answers(request({"PING", "hello"}), bulk("hello"));
    c.answers(request({"ECHO", "hello"}), bulk("hello"));
    c.answers(request({"COMMAND", "DOCS"}), "*0\r\n");
    c.answers(request({"CONFIG", "GET", "save"}), "*0\r\n");
    c.answers(request({"CLIENT", "SETNAME", "x"}), "+OK\r\n");
    c.answers(request({"SELECT", "0"}), "+OK\r\n");
    c.answers("SET inline 'a b'\r\nGET inline\r\n\r\n*0\r\nPING\r\n",
              "+OK\r\n$3\r\na b\r\n+PONG\r\n");
    c.send(request({"INFO"}));
    c.send(request({"QUIT"}));
    const std::string info = c.receive_all();
    EXPECT_NE(info.find(std::string("\r\nindex:") + GetParam() + "\r\n"), std::string::npos)
        << info;
    EXPECT_NE(info.find("\r\nkeys:1\r\n"), std::string::npos) << info;
    EXPECT_TRUE(info.ends_with("+OK\r\n")) << info;
}

TEST_P(store_server_test, refuses_what_it_does_not_understand) {
    client c(server);
    c.answers(request({"FLUSHALL"}), "-ERR unknown command 'FLUSHALL'\r\n");
    c.answers(request({"x\r\ny"}), "-ERR unknown command 'x\\x0d\\x0ay'\r\n");
    c.answers(request({"GET"}), "-ERR wrong number of arguments for 'get' command\r\n");
    c.answers(request({"GET", "a", "b"}), "-ERR wrong number of arguments for 'get' command\r\n");
    c.answers(request({"SET", "a"}), "-ERR wrong number of arguments for 'set' command\r\n");
    c.answers(request({"SET", "a", "b", "EX", "10"}),
              "-ERR syntax error: SET takes a key and a value\r\n");
    c.answers(request({"EXISTS", "a"}), ":0\r\n");
    c.answers(request({"SELECT", "1"}), "-ERR there is database 0 alone\r\n");
    c.answers(request({"CONFIG", "SET", "save", ""}), "-ERR nothing can be set by CONFIG\r\n");
    c.answers(request({"PING"}), "+PONG\r\n");
}

TEST_P(store_server_test, malformed_frames_end_their_connection_alone) {
    client other(server);
    {
        client c(server);
        c.send(request({"PING"}) + "*1\r\n$x\r\n" + request({"PING"}));
        EXPECT_EQ(c.receive_all(), "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n");
    }
    {
        client c(server);
        c.send("*2\r\n$3\r\nGET\r\n$2097153\r\n");
        EXPECT_EQ(c.receive_all(), "-ERR Protocol error: invalid bulk length\r\n");
    }
    {
        // Each of its words could be had.
        client c(server);
        const std::string word(1u << 20, 'w');
        c.send("*4\r\n$4\r\nMGET\r\n" + bulk(word) + bulk(word) + "$65536\r\n");
        EXPECT_EQ(c.receive_all(), "-ERR Protocol error: a request of more than 2162688 bytes\r\n");
    }
    EXPECT_TRUE(other.answers(request({"PING"}), "+PONG\r\n"));
}

TEST_P(store_server_test, requests_come_in_any_pieces) {
    client c(server);
    const std::string value(5000, 'v');
    const std::string bytes =
        request({"SET", "k", value}) + request({"GET", "k"}) + request({"PING"});
    const std::string expected = "+OK\r\n" + bulk(value) + "+PONG\r\n";
    for (const std::size_t piece :
         {std::size_t{1}, std::size_t{7}, std::size_t{4999}, bytes.size()}) {
        for (std::size_t at = 0; at < bytes.size(); at += piece)
            c.send(std::string_view(bytes).substr(at, piece));
        EXPECT_EQ(c.receive(expected.size()), expected) << "in pieces of " << piece;
    }
    const std::string large(2u << 20, 'l');
    c.answers(request({"SET", "k", large}), "+OK\r\n");
    c.answers(request({"GET", "k"}), bulk(large));
}

TEST_P(store_server_test, who_sends_no_more_is_answered_to_the_end) {
    const std::string value(1u << 20, 'v');
    db->put("k", value);
    client c(server);
    std::string requests, expected;
    for (int i = 0; i < 20; ++i) {
        requests += request({"GET", "k"});
        expected += bulk(value);
    }
    c.send(requests);
    c.send_no_more();
    EXPECT_TRUE(c.receive(expected.size() + 1) == expected);
}

// Replies of 256 MiB: the server makes the next when the client has read the last.
TEST_P(store_server_test, replies_wait_for_a_client_that_does_not_read) {
    const std::string value(1u << 20, 'v');
    db->put("k", value);
    client c(server), other(server);
    std::string requests;
    constexpr std::size_t count = 256;
    for (std::size_t i = 0; i < count; ++i) requests += request({"GET", "k"});
    const std::size_t before = resident_bytes();
    c.send(requests);
    for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(other.answers(request({"PING"}), "+PONG\r\n")) << "others do not wait for it";
        ::usleep(2000);
    }
    EXPECT_LT(resident_bytes(), before + (64u << 20));
    const std::string expected = bulk(value);
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_TRUE(c.receive(expected.size()) == expected) << "reply " << i;
    c.answers(request({"PING"}), "+PONG\r\n");
}

TEST_P(store_server_test, clients_on_both_threads_keep_their_keys) {
    constexpr int clients = 6, keys = 300;
    std::atomic<int> wrong{0};
    std::vector<std::thread> all;
    for (int me = 0; me < clients; ++me)
        all.emplace_back([&, me] {
            client c(server);
            for (int i = 0; i < keys; ++i) {
                const std::string key = std::to_string(me) + ":" + std::to_string(i % 50),
                                  value = std::to_string(i);
                c.send(request({"SET", key, value}) + request({"GET", key}) +
                       request({"SET", "shared", value}));
                const std::string expected = "+OK\r\n" + bulk(value) + "+OK\r\n";
                if (c.receive(expected.size()) != expected) ++wrong;
            }
        });
    for (std::thread& one : all) one.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(db->size(), clients * 50u + 1);
    EXPECT_GT(server.cpu_seconds(), 0);
    server.stop();
    EXPECT_EQ(server.cpu_seconds(), 0);
}

INSTANTIATE_TEST_SUITE_P(indexes, store_server_test,
                         ::testing::Values("chained-hash-table", "masstree"),
                         [](const auto& its) { return std::string(its.param).substr(0, 4); });

// get() waits until it is let go.
class waiting_store final : public store {
  public:
    bool get(std::string_view, callback<void(std::string_view)> use) const override {
        std::unique_lock hold(lock_);
        changed_.wait(hold, [this] { return let_go_; });
        use("v");
        return true;
    }
    void let_go() {
        {
            const std::lock_guard hold(lock_);
            let_go_ = true;
        }
        changed_.notify_all();
    }
    bool contains(std::string_view) const override { return false; }
    bool put(std::string_view, std::string_view) override { throw std::bad_alloc(); }
    bool update(std::string_view, std::string_view) override { return false; }
    bool modify(std::string_view, callback<std::string_view(std::string_view)>) override {
        return false;
    }
    bool edit_in_place(std::string_view, callback<void(std::span<char>)>) override { return false; }
    bool erase(std::string_view) override { return false; }
    std::size_t scan(std::string_view, std::size_t,
                     callback<void(std::string_view, std::string_view)>) const override {
        return 0;
    }
    void visit_path(std::string_view, callback<void(const void*, std::size_t)>) const override {}
    std::size_t size() const noexcept override { return 0; }
    std::size_t index_bytes() const noexcept override { return 0; }
    std::size_t managed_nodes() const noexcept override { return 0; }
    obase::runtime* runtime() const noexcept override { return nullptr; }

  private:
    mutable std::mutex lock_;
    mutable std::condition_variable changed_;
    bool let_go_ = false;
};

TEST(store_server, a_thread_that_waits_stops_its_own_clients_alone) {
    waiting_store db;
    store_server server(db, {.threads = 2});
    server.start();
    client waits(server), is_served(server); // one for each thread
    waits.send(request({"GET", "k"}));
    EXPECT_TRUE(is_served.answers(request({"PING"}), "+PONG\r\n"));
    db.let_go();
    EXPECT_EQ(waits.receive(7), bulk("v"));
}

TEST(store_server, no_memory_for_a_value_is_a_reply) {
    waiting_store db;
    store_server server(db, {});
    server.start();
    client c(server);
    c.answers(request({"SET", "k", "v"}), "-OOM there is no memory for this value\r\n");
    c.answers(request({"PING"}), "+PONG\r\n");
}

TEST(store_server, says_why_it_cannot_begin) {
    const auto db = store::open({.index = "chained-hash-table", .expected_keys = 10});
    const store_server first(*db, {});
    EXPECT_GT(first.port(), 0u);
    try {
        const store_server second(*db, {.port = first.port()});
        FAIL() << "two servers have one port";
    } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), "cannot listen on 127.0.0.1 port " + std::to_string(first.port()) +
                                    ": Address already in use");
    }
    EXPECT_THROW(store_server(*db, {.threads = 0}), std::runtime_error);
}

TEST(store_server, ends_with_clients_that_are_there) {
    const auto db = store::open({.index = "chained-hash-table", .expected_keys = 10});
    for (int i = 0; i < 20; ++i) {
        auto server = std::make_unique<store_server>(*db, store_server_options{.threads = 2});
        client before(*server); // nobody accepts yet
        server->start();
        client c(*server);
        c.send(request({"SET", "k", "v"}));
        const bool waits = i % 2 == 0;
        if (waits) c.receive(5);
        server->stop();
        if (!waits) server.reset();               // it may not have been accepted
        const std::string rest = c.receive_all(); // ends: the connection is closed
        EXPECT_TRUE(rest.empty() || (!waits && rest == "+OK\r\n")) << rest;
    }
}

} // namespace
} // namespace crestdb
