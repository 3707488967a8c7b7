// SPDX-License-Identifier: MIT
#include "crestdb/store_server/store_server.hpp"

#include "crestdb/server/request.hpp"
#include "crestdb/server/text.hpp"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <event2/thread.h>
#include <event2/util.h>
#include <fmt/format.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <functional>
#include <limits>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace crestdb {
namespace {

using server::equal_fold;
using server::request_parser;
using arguments = std::vector<std::string_view>;

constexpr std::size_t waiting_replies = std::size_t{1} << 20;

struct base_free {
    void operator()(event_base* b) const noexcept { ::event_base_free(b); }
};

class replies {
  public:
    explicit replies(evbuffer* into) : into_(into) {}
    void text(std::string_view t) {
        if (::evbuffer_add(into_, t.data(), t.size()) != 0) throw std::bad_alloc();
    }
    void number(std::size_t n) { line(':', n); }
    void array(std::size_t n) { line('*', n); }
    void bulk(std::string_view value) {
        line('$', value.size());
        text(value);
        text("\r\n");
    }
    void nothing() { text("$-1\r\n"); }
    void ok() { text("+OK\r\n"); }

  private:
    void line(char kind, std::size_t n) {
        char made[32];
        made[0] = kind;
        char* const end = fmt::format_to(made + 1, "{}\r\n", n);
        text({made, static_cast<std::size_t>(end - made)});
    }
    evbuffer* into_;
};

// What a request does. Throws std::bad_alloc, of the store or of the reply.
struct command {
    std::string_view name;
    std::size_t least, most; // words of the request
    void (*run)(store&, const store_server_options&, const arguments&, replies&);
};

constexpr std::size_t any = std::numeric_limits<std::size_t>::max();

void reply_with(store& in, std::string_view key, replies& out) {
    if (!in.get(key, [&](std::string_view value) { out.bulk(value); })) out.nothing();
}

template <bool (*Counts)(store&, std::string_view)>
void count_keys(store& in, const store_server_options&, const arguments& words, replies& out) {
    std::size_t n = 0;
    for (std::size_t i = 1; i < words.size(); ++i)
        if (Counts(in, words[i])) ++n;
    out.number(n);
}
bool erases(store& in, std::string_view key) { return in.erase(key); }
bool contains(store& in, std::string_view key) { return in.contains(key); }

constexpr command commands[] = {
    {"GET", 2, 2,
     [](store& in, const auto&, const arguments& words, replies& out) {
         reply_with(in, words[1], out);
     }},
    {"SET", 3, any,
     [](store& in, const auto&, const arguments& words, replies& out) {
         if (words.size() > 3)
             return out.text("-ERR syntax error: SET takes a key and a value\r\n");
         try {
             in.put(words[1], words[2]);
         } catch (const std::bad_alloc&) {
             return out.text("-OOM there is no memory for this value\r\n");
         }
         out.ok();
     }},
    {"DEL", 2, any, count_keys<erases>},
    {"UNLINK", 2, any, count_keys<erases>},
    {"EXISTS", 2, any, count_keys<contains>},
    {"MGET", 2, any,
     [](store& in, const auto&, const arguments& words, replies& out) {
         out.array(words.size() - 1);
         for (std::size_t i = 1; i < words.size(); ++i) reply_with(in, words[i], out);
     }},
    {"STRLEN", 2, 2,
     [](store& in, const auto&, const arguments& words, replies& out) {
         std::size_t size = 0;
         in.get(words[1], [&](std::string_view value) { size = value.size(); });
         out.number(size);
     }},
    {"PING", 1, 2,
     [](store&, const auto&, const arguments& words, replies& out) {
         words.size() == 2 ? out.bulk(words[1]) : out.text("+PONG\r\n");
     }},
    {"ECHO", 2, 2,
     [](store&, const auto&, const arguments& words, replies& out) { out.bulk(words[1]); }},
    {"DBSIZE", 1, 1,
     [](store& in, const auto&, const arguments&, replies& out) { out.number(in.size()); }},
    {"INFO", 1, any,
     [](store& in, const store_server_options& options, const arguments&, replies& out) {
         out.bulk(fmt::format("# Server\r\nindex:{}\r\nthreads:{}\r\ntcp_port:{}\r\n"
                              "# Keyspace\r\nkeys:{}\r\nindex_bytes:{}\r\n",
                              options.index, options.threads, options.port, in.size(),
                              in.index_bytes()));
     }},
    {"COMMAND", 1, any, [](store&, const auto&, const arguments&, replies& out) { out.array(0); }},
    {"CONFIG", 3, any,
     [](store&, const auto&, const arguments& words, replies& out) {
         equal_fold(words[1], "GET") ? out.array(0)
                                     : out.text("-ERR nothing can be set by CONFIG\r\n");
     }},
    {"CLIENT", 2, any, [](store&, const auto&, const arguments&, replies& out) { out.ok(); }},
    {"SELECT", 2, 2,
     [](store&, const auto&, const arguments& words, replies& out) {
         words[1] == "0" ? out.ok() : out.text("-ERR there is database 0 alone\r\n");
     }},
};

const command* find_command(std::string_view name) noexcept {
    for (const command& one : commands)
        if (equal_fold(one.name, name)) return &one;
    return nullptr;
}

class worker;

struct events_free {
    void operator()(bufferevent* b) const noexcept { ::bufferevent_free(b); }
    void operator()(event* e) const noexcept { ::event_free(e); }
};

// A client: the bytes of its requests and of its replies. Every callback may end it, as its last act.
class connection {
  public:
    connection(worker& its, std::unique_ptr<bufferevent, events_free> events);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

  private:
    static connection& of(void* context) { return *static_cast<connection*>(context); }
    void can_read();
    void has_written();
    void has_event(short what);
    // Ends when what was answered is sent.
    void finish();
    void end();
    // Answers what has come, until replies have to wait. False: nothing behind it is to be answered.
    bool answer();
    void answer_one(const arguments& words, replies& out);

    worker& its_;
    std::unique_ptr<bufferevent, events_free> events_;
    request_parser parser_;
    bool paused_ = false;  // replies wait
    bool no_more_ = false; // the client has sent all it will
    bool is_ending_ = false;
};

// A thread with an event loop.
class worker {
  public:
    worker(store& in, const store_server_options& how) : in_(in), options_(how) {
        if (base_ == nullptr) throw std::bad_alloc();
        wake_.reset(::event_new(
            base_.get(), -1, EV_PERSIST,
            [](evutil_socket_t, short, void* context) {
                static_cast<worker*>(context)->serve_what_was_handed();
            },
            this));
        if (wake_ == nullptr) throw std::bad_alloc();
    }
    ~worker() { drop_what_was_handed(); }
    worker(const worker&) = delete;
    worker& operator=(const worker&) = delete;

    void start() {
        thread_ = std::thread([this] {
            ::event_base_loop(base_.get(), EVLOOP_NO_EXIT_ON_EMPTY);
            connections_.clear();
            ::event_base_loop(base_.get(), EVLOOP_NONBLOCK); // which closes their sockets
        });
    }
    void stop() noexcept {
        if (!thread_.joinable()) return;
        // An event: a loop that has not begun yet would not know of a break.
        const timeval now{};
        ::event_base_loopexit(base_.get(), &now);
        thread_.join();
        drop_what_was_handed();
    }
    // By any thread: the descriptor is this worker's from now on.
    void take(evutil_socket_t client) noexcept {
        try {
            const std::lock_guard hold(handing_);
            handed_.push_back(client);
        } catch (const std::bad_alloc&) {
            ::close(client);
            return;
        }
        ::event_active(wake_.get(), EV_TIMEOUT, 0);
    }
    void forget(const connection* ended) noexcept {
        const auto at = connections_.find(ended);
        if (at != connections_.end()) connections_.erase(at);
    }
    event_base* base() const noexcept { return base_.get(); }
    double cpu_seconds() noexcept {
        clockid_t clock{};
        timespec used{};
        if (!thread_.joinable() || ::pthread_getcpuclockid(thread_.native_handle(), &clock) != 0 ||
            ::clock_gettime(clock, &used) != 0)
            return 0;
        return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
    }

    store& in() noexcept { return in_; }
    const store_server_options& options() const noexcept { return options_; }
    // Bytes of a request.
    std::size_t most_bytes() const noexcept { return options_.most_value_bytes + (64u << 10); }

  private:
    struct by_address {
        using is_transparent = void;
        static const connection* at(const std::unique_ptr<connection>& c) noexcept {
            return c.get();
        }
        static const connection* at(const connection* c) noexcept { return c; }
        bool operator()(const auto& a, const auto& b) const noexcept {
            return std::less<>{}(at(a), at(b));
        }
    };

    void drop_what_was_handed() noexcept {
        const std::lock_guard hold(handing_);
        for (const evutil_socket_t client : handed_) ::close(client);
        handed_.clear();
    }
    void serve_what_was_handed() noexcept {
        std::vector<evutil_socket_t> clients;
        {
            const std::lock_guard hold(handing_);
            clients.swap(handed_);
        }
        for (const evutil_socket_t client : clients) {
            std::unique_ptr<bufferevent, events_free> events(
                ::bufferevent_socket_new(base_.get(), client, BEV_OPT_CLOSE_ON_FREE));
            if (events == nullptr) {
                ::close(client);
                continue;
            }
            try {
                connections_.insert(std::make_unique<connection>(*this, std::move(events)));
            } catch (const std::bad_alloc&) {
                // Whoever owned the client has closed it.
            }
        }
    }

    store& in_;
    const store_server_options& options_;
    std::unique_ptr<event_base, base_free> base_{::event_base_new()};
    std::unique_ptr<event, events_free> wake_;
    std::mutex handing_;
    std::vector<evutil_socket_t> handed_;                           // under handing_
    std::set<std::unique_ptr<connection>, by_address> connections_; // of its thread alone
    std::thread thread_;
};

connection::connection(worker& its, std::unique_ptr<bufferevent, events_free> events)
    : its_(its), events_(std::move(events)) {
    bufferevent* const e = events_.get();
    const int on = 1;
    ::setsockopt(::bufferevent_getfd(e), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::bufferevent_setcb(
        e, [](bufferevent*, void* context) { of(context).can_read(); },
        [](bufferevent*, void* context) { of(context).has_written(); },
        [](bufferevent*, short what, void* context) { of(context).has_event(what); }, this);
    ::bufferevent_setwatermark(e, EV_READ, 0, its.most_bytes());
    if (::bufferevent_enable(e, EV_READ | EV_WRITE) != 0) throw std::bad_alloc();
}

void connection::end() { its_.forget(this); }

void connection::finish() {
    is_ending_ = true;
    ::bufferevent_disable(events_.get(), EV_READ);
    if (::evbuffer_get_length(::bufferevent_get_output(events_.get())) == 0) end();
}

void connection::has_event(short what) {
    if ((what & BEV_EVENT_EOF) == 0 || is_ending_) return end();
    no_more_ = true;
    if (!paused_) finish();
}

void connection::can_read() {
    if (paused_ || is_ending_) return;
    bool goes_on = false;
    try {
        goes_on = answer();
    } catch (const std::bad_alloc&) { // for replies: what of them is there is of no use
        return end();
    }
    if (!goes_on || (no_more_ && !paused_)) finish();
}

void connection::has_written() {
    if (is_ending_) return end();
    if (!paused_) return;
    paused_ = false;
    ::bufferevent_enable(events_.get(), EV_READ);
    can_read();
}

bool connection::answer() {
    evbuffer* const in = ::bufferevent_get_input(events_.get());
    evbuffer* const out = ::bufferevent_get_output(events_.get());
    replies reply(out);
    for (;;) {
        const std::size_t there = ::evbuffer_get_length(in);
        if (there == 0 || there < parser_.needed()) return true;
        const auto* const bytes = reinterpret_cast<const char*>(::evbuffer_pullup(in, -1));
        if (bytes == nullptr) throw std::bad_alloc();
        std::size_t at = 0;
        bool is_whole = true;
        while (at < there) {
            // Looked at again when they are sent.
            paused_ = ::evbuffer_get_length(out) > waiting_replies;
            if (paused_) break;
            const auto result =
                parser_.parse({bytes + at, there - at}, true, its_.options().most_value_bytes);
            is_whole = result != request_parser::result::incomplete;
            if (result == request_parser::result::error) {
                reply.text(fmt::format("-{}\r\n", parser_.error()));
                return false;
            }
            if (!is_whole) {
                if (std::max(parser_.needed(), there - at + 1) <= its_.most_bytes()) break;
                reply.text(fmt::format("-ERR Protocol error: a request of more than {} bytes\r\n",
                                       its_.most_bytes()));
                return false;
            }
            const arguments& words = parser_.arguments();
            if (!words.empty() && equal_fold(words[0], "QUIT")) {
                reply.ok();
                return false;
            }
            if (!words.empty()) answer_one(words, reply);
            at += parser_.used();
            if (words.size() > 4096) parser_.release_memory();
        }
        ::evbuffer_drain(in, at);
        if (paused_) {
            ::bufferevent_disable(events_.get(), EV_READ);
            return true;
        }
        if (!is_whole) return true;
    }
}

void connection::answer_one(const arguments& words, replies& out) {
    const command* const what = find_command(words[0]);
    if (what == nullptr)
        return out.text(fmt::format("-ERR unknown command '{}'\r\n", server::printable(words[0])));
    if (words.size() < what->least || words.size() > what->most)
        return out.text(fmt::format("-ERR wrong number of arguments for '{}' command\r\n",
                                    server::lower(what->name)));
    what->run(its_.in(), its_.options(), words, out);
}

[[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

} // namespace

struct store_server::state {
    state(store& serves, const store_server_options& how) : options(how) {
        static const bool threads = ::evthread_use_pthreads() == 0;
        if (!threads) throw std::bad_alloc();
        if (options.threads < 1 || options.threads > 256)
            throw std::runtime_error(fmt::format(
                "{} threads of a store's server: 1 to 256 are possible", options.threads));
        for (unsigned i = 0; i < options.threads; ++i)
            workers.push_back(std::make_unique<worker>(serves, options));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(options.port));
        listener.reset(::evconnlistener_new_bind(
            workers[0]->base(),
            [](evconnlistener*, evutil_socket_t client, sockaddr*, int, void* context) {
                state& its = *static_cast<state*>(context);
                its.workers[its.next++ % its.workers.size()]->take(client);
            },
            this, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, 511,
            reinterpret_cast<const sockaddr*>(&address), sizeof address));
        if (listener == nullptr)
            fail(fmt::format("cannot listen on 127.0.0.1 port {}", options.port));
        // Without descriptors or memory the loop would ask for the same client again and again.
        ::evconnlistener_set_error_cb(listener.get(), [](evconnlistener* l, void*) {
            ::evconnlistener_disable(l);
            const timeval later{.tv_sec = 0, .tv_usec = 100'000};
            ::event_base_once(
                ::evconnlistener_get_base(l), -1, EV_TIMEOUT,
                [](evutil_socket_t, short, void* it) {
                    ::evconnlistener_enable(static_cast<evconnlistener*>(it));
                },
                l, &later);
        });
        socklen_t size = sizeof address;
        if (::getsockname(::evconnlistener_get_fd(listener.get()),
                          reinterpret_cast<sockaddr*>(&address), &size) != 0)
            fail("the port that the system chose");
        options.port = ntohs(address.sin_port);
    }

    struct listener_frees {
        void operator()(evconnlistener* l) const noexcept { ::evconnlistener_free(l); }
    };

    store_server_options options;
    std::vector<std::unique_ptr<worker>> workers;
    std::size_t next = 0; // of the first worker's thread
    std::unique_ptr<evconnlistener, listener_frees> listener;
};

store_server::store_server(store& serves, const store_server_options& options)
    : state_(std::make_unique<state>(serves, options)) {}

store_server::~store_server() { stop(); }

unsigned store_server::port() const noexcept { return state_->options.port; }

void store_server::start() {
    // Signals are the program's own threads' business.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        for (const auto& one : state_->workers) one->start();
    } catch (...) {
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        stop();
        throw;
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void store_server::stop() noexcept {
    // The first, which accepts, before those that it hands clients to.
    for (const auto& one : state_->workers) one->stop();
}

double store_server::cpu_seconds() const noexcept {
    double sum = 0;
    for (const auto& one : state_->workers) sum += one->cpu_seconds();
    return sum;
}

} // namespace crestdb
