// SPDX-License-Identifier: MIT
#include "tools/m2t/table_client.hpp"

#include "tools/bench/interrupt.hpp"
#include "tools/workload/key_format.hpp"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <fmt/format.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace obase::tools {
namespace {

struct frees {
    void operator()(event_base* b) const noexcept { ::event_base_free(b); }
    void operator()(bufferevent* b) const noexcept { ::bufferevent_free(b); }
};

constexpr std::string_view nothing = "$-1\r\n", stored = "+OK\r\n";
constexpr std::size_t key_bytes = 24;

// All connections while the requests of one call are asked.
class crowd {
  public:
    crowd(const table_client_settings& settings, std::span<const table_request> requests)
        : settings_(settings), requests_(requests), base_(::event_base_new()),
          there_(fmt::format("${}\r\n{}\r\n", settings.value.size(), settings.value)) {
        if (base_ == nullptr) throw std::bad_alloc();
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(static_cast<std::uint16_t>(settings.port));
        const timeval minute{.tv_sec = 60, .tv_usec = 0};
        clients_.resize(settings.connections);
        for (client& c : clients_) {
            c.of = this;
            c.events.reset(::bufferevent_socket_new(base_.get(), -1, BEV_OPT_CLOSE_ON_FREE));
            bufferevent* const e = c.events.get();
            if (e == nullptr) throw std::bad_alloc();
            ::bufferevent_setcb(
                e,
                [](bufferevent*, void* it) {
                    client& one = *static_cast<client*>(it);
                    one.of->received(one);
                },
                nullptr,
                [](bufferevent*, short what, void* it) {
                    client& one = *static_cast<client*>(it);
                    one.of->happened(one, what);
                },
                &c);
            ::bufferevent_set_timeouts(e, &minute, nullptr);
            if (::bufferevent_socket_connect(e, reinterpret_cast<sockaddr*>(&address),
                                             sizeof address) != 0)
                throw std::runtime_error(
                    fmt::format("cannot connect to 127.0.0.1 port {}", settings.port));
            ::bufferevent_enable(e, EV_READ | EV_WRITE);
        }
    }
    crowd(const crowd&) = delete;
    crowd& operator=(const crowd&) = delete;

    void run() {
        while (answered_ < requests_.size() && failed_.empty()) {
            if (interrupted()) throw interruption("while a server was asked");
            ::event_base_loop(base_.get(), EVLOOP_ONCE);
        }
        if (!failed_.empty()) throw std::runtime_error("the server of the table: " + failed_);
    }

  private:
    struct client {
        crowd* of = nullptr;
        std::unique_ptr<bufferevent, frees> events;
        const table_request* now = nullptr;
        bool writes = false; // what is under way is a SET
    };

    void send(client& c, bool writes) {
        std::array<char, key_bytes> key;
        workload::write_key(key, c.now->id);
        c.writes = writes;
        text_.clear();
        fmt::format_to(std::back_inserter(text_), "*{}\r\n$3\r\n{}\r\n${}\r\n", writes ? 3 : 2,
                       writes ? "SET" : "GET", key.size());
        text_.append(key.data(), key.size()).append("\r\n");
        if (writes) text_ += there_; // a bulk string in both directions
        if (::bufferevent_write(c.events.get(), text_.data(), text_.size()) != 0)
            failed_ = "no memory for a request";
    }
    void next(client& c) {
        c.now = nullptr;
        if (begun_ == requests_.size()) return;
        c.now = &requests_[begun_++];
        send(c, c.now->what != workload::operation::read &&
                    c.now->what != workload::operation::read_modify_write);
    }
    void happened(client& c, short what) {
        if ((what & BEV_EVENT_CONNECTED) != 0) {
            const int on = 1;
            ::setsockopt(::bufferevent_getfd(c.events.get()), IPPROTO_TCP, TCP_NODELAY, &on,
                         sizeof on);
            return next(c);
        }
        if (c.now == nullptr && (what & BEV_EVENT_TIMEOUT) != 0) return; // has nothing to ask
        failed_ =
            (what & BEV_EVENT_TIMEOUT) != 0 ? "no reply within a minute" : "a connection has ended";
    }
    void received(client& c) {
        evbuffer* const in = ::bufferevent_get_input(c.events.get());
        const std::size_t there = ::evbuffer_get_length(in);
        std::string_view expected = c.writes ? stored : std::string_view(there_);
        if (there >= nothing.size() && c.now != nullptr && !c.writes &&
            c.now->id >= settings_.records &&
            std::memcmp(::evbuffer_pullup(in, nothing.size()), nothing.data(), nothing.size()) == 0)
            expected = nothing;
        const std::size_t seen = std::min(there, expected.size());
        if (there > expected.size() || c.now == nullptr ||
            std::memcmp(::evbuffer_pullup(in, static_cast<ev_ssize_t>(seen)), expected.data(),
                        seen) != 0) {
            failed_ = fmt::format("another reply than expected, for record {}",
                                  c.now == nullptr ? 0 : c.now->id);
            return;
        }
        if (there < expected.size()) return; // the rest is under way
        ::evbuffer_drain(in, expected.size());
        if (c.now->what == workload::operation::read_modify_write && !c.writes)
            return send(c, true);
        ++answered_;
        next(c);
    }

    const table_client_settings& settings_;
    const std::span<const table_request> requests_;
    const std::unique_ptr<event_base, frees> base_;
    const std::string there_; // the reply of a GET
    std::vector<client> clients_;
    std::string text_;
    std::size_t begun_ = 0, answered_ = 0;
    std::string failed_;
};

} // namespace

void table_client::ask(std::span<const table_request> requests) const {
    crowd(settings_, requests).run();
}

} // namespace obase::tools
