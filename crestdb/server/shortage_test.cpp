// SPDX-License-Identifier: MIT
//
// Out of memory at each place in turn: nothing is lost, no descriptor is closed twice, no client is counted for
// ever, nobody waits for ever.
#include "crestdb/server/cold_reader.hpp"
#include "crestdb/server/network.hpp"
#include "crestdb/server/served.hpp"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CRESTDB_HEAP_IS_SANITIZERS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CRESTDB_HEAP_IS_SANITIZERS 1
#endif
#endif

namespace crestdb::server {

namespace {

// The sanitizers keep their own operator new and close().
#if defined(CRESTDB_HEAP_IS_SANITIZERS)
constexpr bool possible = false;
#else
constexpr bool possible = true;
#endif

thread_local bool is_tester = false;
std::atomic<bool> in_tester{false}; // where the shortage is
std::atomic<int> news_left{-1};     // that succeed; one fails then. -1: all succeed
std::atomic<int> bad_closes{0};

[[maybe_unused]] bool fails() {
    if (news_left < 0 || is_tester != in_tester) return false;
    return news_left.fetch_sub(1) == 0;
}

// One allocation fails, in this thread or in others.
class shortage {
  public:
    shortage(int after, bool here) {
        is_tester = true;
        in_tester = here;
        news_left = after;
    }
    ~shortage() { news_left = -1; }
    shortage(const shortage&) = delete;
    shortage& operator=(const shortage&) = delete;
    bool happened() const { return news_left < 0; }
};

} // namespace

} // namespace crestdb::server

#if !defined(CRESTDB_HEAP_IS_SANITIZERS)
// Not inlined: g++ would take malloc and free for a mismatched pair.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
    void* p = crestdb::server::fails() ? nullptr : std::malloc(bytes);
    if (p == nullptr) throw std::bad_alloc();
    return p;
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

extern "C" int close(int descriptor) {
    const auto result = static_cast<int>(::syscall(SYS_close, descriptor));
    if (result != 0 && errno == EBADF) ++crestdb::server::bad_closes;
    return result;
}
#endif

namespace crestdb::server {

namespace {

TEST(Shortage, RenameLosesNothing) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    bool done = false;
    for (int n = 0; !done; ++n) {
        served s;
        s({"SET", "string", "v", "EX", "1000"});
        s({"HSET", "hash", "f", "v"});
        for (const std::string from : {"string", "hash"}) {
            const std::string to = "new-" + from;
            const std::vector<std::string_view> args{"RENAME", from, to};
            output out;
            {
                const shortage none(n, true);
                s.server.execute(s.client, args, out);
                done = !none.happened();
            }
            const std::string reply = out.text();
            const bool renamed = reply == "+OK\r\n";
            EXPECT_EQ(s({"EXISTS", from}), renamed ? ":0\r\n" : ":1\r\n") << n << " " << reply;
            EXPECT_EQ(s({"EXISTS", to}), renamed ? ":1\r\n" : ":0\r\n") << n << " " << reply;
        }
        const std::string hash = s({"EXISTS", "hash"}) == ":1\r\n" ? "hash" : "new-hash";
        EXPECT_EQ(s({"HGET", hash, "f"}), "$1\r\nv\r\n") << n;
        EXPECT_EQ(s.server.keys.expiring(0), 1u);
        s({"DEL", "string", "new-string", hash});
        EXPECT_EQ(s.server.keys.expiring(0), 0u);
        ASSERT_LT(n, 1000);
    }
}

int connected(const std::string& path) {
    const int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    EXPECT_EQ(::connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return s;
}

// "" when the server closes.
std::string ping(int s) {
    static constexpr std::string_view request = "*1\r\n$4\r\nPING\r\n";
    if (::send(s, request.data(), request.size(), MSG_NOSIGNAL) < 0) return "";
    char reply[64];
    const ssize_t n = ::recv(s, reply, sizeof reply, 0);
    return n > 0 ? std::string(reply, static_cast<std::size_t>(n)) : "";
}

TEST(Shortage, ClientsAreClosedOnceAndCountedOnce) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    served s;
    s.options.port = 0;
    s.options.threads = 1;
    s.options.unix_socket = s.directory() + "/s";
    s.options.max_clients = 3;
    network net(s.server);
    ASSERT_EQ(net.listen(), "");
    std::thread serving([&] { net.run(); });
    bad_closes = 0;
    for (int n = 0; n < 40; ++n) {
        const shortage none(n, false);
        const int client = connected(s.options.unix_socket);
        const std::string reply = ping(client);
        EXPECT_TRUE(reply.empty() || reply.starts_with("+PONG") || reply.starts_with("-")) << reply;
        ::close(client);
    }
    EXPECT_EQ(bad_closes, 0);
    // All of them are gone: as many as are allowed are served.
    std::vector<int> clients;
    for (int tries = 0; clients.size() < 3 && tries < 500; ++tries) {
        const int client = connected(s.options.unix_socket);
        if (ping(client).starts_with("+PONG")) {
            clients.push_back(client);
        } else {
            ::close(client);
            ::usleep(10'000);
        }
    }
    EXPECT_EQ(clients.size(), 3u) << "clients that are not there are counted";
    for (const int client : clients) ::close(client);
    net.stop();
    serving.join();
    std::filesystem::remove_all(s.options.directory);
}

class all_on_disk final : public cold_memory {
  public:
    bool any_may_leave() const noexcept override { return true; }
    bool may_leave(const void*) const noexcept override { return true; }
    bool is_resident(const void*, std::size_t) const noexcept override { return false; }
    bool read_in(void*, std::size_t) noexcept override { return true; }
};

TEST(Shortage, WhoWaitsForColdDataIsTold) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    served s;
    for (int i = 0; i < 300; ++i) s({"HSET", "h", "f" + std::to_string(i), "v"});
    cold_reader reader(s.server.keys, s.options, std::make_unique<all_on_disk>());
    reader.start(1);
    struct told final : cold_reader::waiter {
        explicit told(std::atomic<int>& its) : count(its) {}
        void is_here(std::unique_ptr<waiter>, bool) noexcept override {
            ++count;
            count.notify_one();
        }
        std::atomic<int>& count;
    };
    std::atomic<int> count{0};
    const std::vector<std::string_view> args{"HGETALL", "h"};
    for (int n = 0; n < 20; ++n) {
        auto wanted = reader.look(s.client, args);
        ASSERT_TRUE(wanted.has_value());
        auto who = std::make_unique<told>(count);
        const shortage none(n, false);
        ASSERT_TRUE(reader.read(std::move(*wanted), std::move(who)));
        count.wait(n); // for ever, if nobody tells
    }
    EXPECT_EQ(count, 20);
}

} // namespace

} // namespace crestdb::server
