// SPDX-License-Identifier: MIT
//
// Out of memory at each place in turn: nothing is lost, no descriptor is closed twice, no client is counted for
// ever, nobody waits for ever.
#include "crestdb/server/cold_reader.hpp"
#include "crestdb/server/network.hpp"
#include "crestdb/server/served.hpp"

#include <event2/event.h>

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
    cold_reader reader(s.server.keys, s.options, std::make_unique<all_on_disk>(), {});
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

TEST(Shortage, KeysEndAlsoAfterIt) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    served s;
    s({"SET", "k", "v"});
    const keyspace::key_id id = keyspace::id_of(0, "over");
    {
        const std::lock_guard hold(s.server.keys.lock_of(id.part));
        const managed_scope scope;
        s.server.keys.put(id, record::make(record_kind::string, id.key, "v", 1));
    }
    cold_reader reader(s.server.keys, s.options, std::make_unique<all_on_disk>(), {});
    {
        const shortage none(0, true);
        EXPECT_THROW(reader.expire(), std::bad_alloc);
    }
    reader.expire();
    struct told final : cold_reader::waiter {
        explicit told(std::atomic<int>& its) : count(its) {}
        void is_here(std::unique_ptr<waiter>, bool) noexcept override {
            ++count;
            count.notify_one();
        }
        std::atomic<int>& count;
    };
    std::atomic<int> count{0};
    const std::vector<std::string_view> args{"GET", "k"};
    auto wanted = reader.look(s.client, args);
    ASSERT_TRUE(wanted.has_value());
    ASSERT_TRUE(reader.read(std::move(*wanted), std::make_unique<told>(count)));
    reader.start(1);
    count.wait(0);
    // Who waits for few keys is served first.
    while (s.server.keys.count.expired == 0) std::this_thread::yield();
    EXPECT_EQ(s.server.keys.count.expired, 1u);
    EXPECT_EQ(s.server.keys.size(0), 1u);
}

// Longer than what a string holds in itself.
std::string long_name(const std::string& name) { return name + std::string(60, '.'); }

TEST(Shortage, WatchIsKeptOrRefused) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    const std::string key = long_name("key");
    bool done = false;
    int refused = 0;
    for (int n = 0; !done; ++n) {
        served s;
        s({"SET", key, "1"});
        const std::vector<std::string_view> watch{"WATCH", key};
        output out;
        {
            const shortage none(n, true);
            s.server.execute(s.client, watch, out);
            done = !none.happened();
        }
        if (out.text() != "+OK\r\n") {
            ++refused;
            EXPECT_TRUE(s.client.watched.empty()) << n;
            EXPECT_EQ(s.client.watched_bytes, 0u) << n;
            EXPECT_EQ(s({"WATCH", key}), "+OK\r\n");
        }
        session second{2, "test:1", "test:1", -1};
        output to_second;
        s.server.execute(second, std::vector<std::string_view>{"SET", key, "2"}, to_second);
        s({"MULTI"});
        s({"PING"});
        EXPECT_EQ(s({"EXEC"}), "*-1\r\n") << n << " " << out.text();
        ASSERT_LT(n, 1000);
    }
    EXPECT_GT(refused, 3);
}

TEST(Shortage, WhoWatchesIsToldOfEachChange) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    const std::string key = long_name("key"), other = long_name("other");
    std::vector<std::string> hset{"HSET", key}, zadd{"ZADD", key};
    for (int i = 0; i < 500; ++i) {
        hset.insert(hset.end(), {"field-" + std::to_string(i), "v"});
        zadd.insert(zadd.end(), {std::to_string(i), "member-" + std::to_string(i)});
    }
    const std::pair<std::vector<std::string>, std::vector<std::string>> changes[] = {
        {{"SET", key, "1"}, {"SET", key, "2"}},         {{"SET", key, "1"}, {"SET", key, "longer"}},
        {{"SET", key, "1"}, {"APPEND", key, "longer"}}, {{"SET", key, "1"}, {"DEL", key}},
        {{"SET", key, "1"}, {"EXPIRE", key, "1000"}},   {{"SET", key, "1"}, {"RENAME", key, other}},
        {{"SET", key, "1"}, {"GETDEL", key}},           {{"HSET", key, "f", "v"}, hset},
        {{"HSET", key, "f", "v"}, {"HDEL", key, "f"}},  {{"ZADD", key, "1", "m"}, zadd},
        {{"ZADD", key, "1", "m"}, {"ZREM", key, "m"}},
    };
    for (const auto& [before, change] : changes) {
        bool done = false;
        for (int n = 0; !done; ++n) {
            SCOPED_TRACE(change[0] + " " + std::to_string(n));
            served s;
            s(before);
            const auto state = [&] {
                const std::string type = s({"TYPE", key});
                return type + s({"PEXPIRETIME", key}) +
                       s(type == "+hash\r\n"   ? std::vector<std::string>{"HGETALL", key}
                         : type == "+zset\r\n" ? std::vector<std::string>{"ZRANGE", key, "0", "-1"}
                                               : std::vector<std::string>{"GET", key});
            };
            const std::string was = state();
            ASSERT_EQ(s({"WATCH", key}), "+OK\r\n");
            session second{2, "test:1", "test:1", -1};
            const std::vector<std::string_view> args(change.begin(), change.end());
            output out;
            {
                const shortage none(n, true);
                s.server.execute(second, args, out);
                done = !none.happened();
            }
            const bool is_another = state() != was;
            EXPECT_TRUE(is_another || !done);
            s({"MULTI"});
            s({"PING"});
            const std::string reply = s({"EXEC"});
            if (is_another) {
                EXPECT_EQ(reply, "*-1\r\n");
            }
            ASSERT_LT(n, 1000);
        }
    }
}

TEST(Shortage, FlushingIsDoneOrRefused) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    for (const std::string_view flush : {"FLUSHALL", "FLUSHDB"}) {
        const std::vector<std::string_view> args{flush};
        bool done = false;
        for (int n = 0; !done; ++n) {
            served s;
            s({"SET", "k", "v"});
            s({"HSET", "h", "f", "v"});
            output out;
            {
                const shortage none(n, true);
                s.server.execute(s.client, args, out);
                done = !none.happened();
            }
            EXPECT_EQ(s.server.keys.size(0), out.text() == "+OK\r\n" ? 0u : 2u) << n << out.text();
            ASSERT_LT(n, 1000);
        }
    }
}

TEST(Shortage, AccountsEndAtWhatTheyWere) {
    if (!possible) GTEST_SKIP() << "a sanitizer has operator new";
    // As many keys of one part as the index has in one block, and one more.
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < 129; ++i)
        if (std::string key = "key-" + std::to_string(i); keyspace::id_of(0, key).part == 0)
            keys.push_back(std::move(key));
    std::int64_t usual = -1;
    bool done = false;
    for (int n = -1; !done; ++n) { // -1: no shortage
        served s;
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const std::string at = std::to_string(9'000'000'000'000 + 5000 * i);
            const std::vector<std::string_view> set{"SET", keys[i], "v", "PXAT", at};
            output out;
            if (i + 1 == keys.size()) {
                const shortage none(n, true);
                s.server.execute(s.client, set, out);
                done = n >= 0 && !none.happened();
            } else {
                s.server.execute(s.client, set, out);
            }
        }
        for (const std::string& key : keys) s({"DEL", key});
        EXPECT_EQ(s.server.keys.size(0), 0u);
        if (n < 0) usual = s.server.keys.used_bytes();
        EXPECT_EQ(s.server.keys.used_bytes(), usual) << n;
        ASSERT_LT(n, 1000);
    }
}

// Of libevent's memory: how many more calls succeed; one fails then. -1: all succeed
std::atomic<int> event_calls_left{-1};
bool event_fails() { return event_calls_left >= 0 && event_calls_left.fetch_sub(1) == 0; }

TEST(Shortage, EventsThatAreNotThereAreNotUsed) {
    served s;
    s.options.port = 0;
    s.options.threads = 2;
    s.options.unix_socket = s.directory() + "/s";
    event_set_mem_functions(
        [](std::size_t bytes) { return event_fails() ? nullptr : std::malloc(bytes); },
        [](void* p, std::size_t bytes) { return event_fails() ? nullptr : std::realloc(p, bytes); },
        std::free);
    bool done = false;
    int refused = 0;
    for (int n = 0; !done; ++n) {
        network net(s.server);
        event_calls_left = n;
        try {
            EXPECT_EQ(net.listen(), "");
        } catch (const std::bad_alloc&) {
            ++refused;
        } catch (const std::runtime_error&) { // no loop
        }
        done = event_calls_left >= 0;
        event_calls_left = -1;
        ASSERT_LT(n, 1000);
    }
    event_set_mem_functions(std::malloc, std::realloc, std::free);
    // Two of each thread, and one for the socket, to accept again, the timer, and two signals.
    EXPECT_GE(refused, 9);
    std::filesystem::remove_all(s.options.directory);
}

} // namespace

} // namespace crestdb::server
