// SPDX-License-Identifier: MIT
#include "crestdb/server/network.hpp"

#include "crestdb/server/begun_reads.hpp"
#include "crestdb/server/cold_reader.hpp"
#include "crestdb/server/instance.hpp"
#include "crestdb/server/request.hpp"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>

#include <fmt/format.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace crestdb::server {

namespace {

constexpr std::size_t receive_bytes = 64 * 1024;
// Replies that may wait before the client's next requests do.
constexpr std::size_t output_pause = 1u << 20;
constexpr std::size_t output_resume = output_pause / 2;
// Bytes read from one connection before the others of the thread have their turn.
constexpr std::size_t fair_share = 256 * 1024;
constexpr int pieces_at_once = 64;

std::string reason(int number) { return std::generic_category().message(number); }

struct event_free_function {
    void operator()(event* e) const noexcept { event_free(e); }
};
using event_ptr = std::unique_ptr<event, event_free_function>;

// One that is there, not added yet. Throws std::bad_alloc.
event_ptr new_event(event_base* base, evutil_socket_t descriptor, int what, event_callback_fn call,
                    void* of) {
    event_ptr made(event_new(base, descriptor, static_cast<short>(what), call, of));
    if (made == nullptr) throw std::bad_alloc();
    return made;
}
void add_event(event& added, const timeval* after = nullptr) {
    if (event_add(&added, after) != 0) throw std::bad_alloc();
}

struct base_free_function {
    void operator()(event_base* b) const noexcept { event_base_free(b); }
};

class worker;

// A descriptor that is closed once.
class owned_descriptor {
  public:
    explicit owned_descriptor(int descriptor) noexcept : descriptor_(descriptor) {}
    owned_descriptor(owned_descriptor&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)) {}
    owned_descriptor& operator=(owned_descriptor&&) = delete;
    ~owned_descriptor() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    int get() const noexcept { return descriptor_; }

  private:
    int descriptor_;
};

// One of the clients of a thread, from when it is accepted to when it is closed.
class counted_client {
  public:
    explicit counted_client(std::atomic<std::size_t>& clients) noexcept : clients_(&clients) {
        ++*clients_;
    }
    counted_client(counted_client&& other) noexcept
        : clients_(std::exchange(other.clients_, nullptr)) {}
    counted_client& operator=(counted_client&&) = delete;
    ~counted_client() {
        if (clients_ != nullptr) --*clients_;
    }

  private:
    std::atomic<std::size_t>* clients_;
};

// A client that was accepted.
struct arrival {
    owned_descriptor socket;
    counted_client counted;
    std::string address, local;
};

// One client's bytes.
class connection {
  public:
    connection(worker& its_thread, arrival arrived, std::uint64_t id);
    ~connection();
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    session& client() noexcept { return client_; }
    bool begin();
    // After a wait for cold data: goes on with the request that waited.
    void resume(bool readable, gathered found) noexcept;
    // After a wait for a read that was begun: looks again. Not here: a thread reads what there is.
    void look_again(bool is_here) noexcept;
    // Closes one that has been idle for that long.
    bool is_idle(std::int64_t now, std::int64_t most_seconds) const noexcept {
        return out_.empty() && !waiting_ && now - client_.last_used_ms > most_seconds * 1000;
    }
    std::list<std::unique_ptr<connection>>::iterator place;

  private:
    friend class worker;
    // Both return false when the connection is to be closed.
    bool on_readable();
    bool on_writable();
    void or_close(bool (connection::*step)());
    enum class progress { all, paused, failed };
    // Executes what is complete; `at` gets the bytes that are used.
    progress execute(std::string_view bytes, std::size_t& at);
    bool execute_kept();
    bool wait_for_cold(arguments args);
    bool flush();
    void watch_reading(bool on);
    void watch_writing(bool on);
    bool settled();
    void go_on() noexcept;

    // First, so that these end last.
    counted_client counted_;
    owned_descriptor socket_;
    worker& thread_;
    session client_;
    request_parser parser_;
    std::string in_;        // what was received and is not used yet
    std::size_t in_at_ = 0; // bytes of it that are used
    output out_;
    event_ptr readable_, writable_;
    bool reading_ = false, writing_ = false;
    bool ended_ = false;           // the client sends no more
    bool closing_ = false;         // nothing more is executed; closed when the output is sent
    bool paused_ = false;          // for the output to be read
    bool waiting_ = false;         // for cold data
    bool request_is_warm_ = false; // the next request has waited already
    begun_for_request begun_;      // and so far it was for these
    bool cold_failed_ = false;     // and its data could not be read
    gathered found_;               // or was found, for a request that is done apart
};

// One I/O thread.
class worker {
  public:
    worker(instance& its_server, cold_reader& cold)
        : server(its_server), cold_(cold), base_(event_base_new()),
          ticks_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
        if (base_ == nullptr)
            throw std::runtime_error("no event loop: libevent finds no way to wait");
        second_ = new_event(
            base_.get(), -1, EV_PERSIST,
            [](evutil_socket_t, short, void* w) { static_cast<worker*>(w)->each_second(); }, this);
        const timeval second{1, 0};
        add_event(*second_, &second);
        mail_ = new_event(
            base_.get(), -1, EV_PERSIST,
            [](evutil_socket_t, short, void* w) { static_cast<worker*>(w)->read_mail(); }, this);
        if (ticks_.get() >= 0) {
            ticked_ = new_event(
                base_.get(), ticks_.get(), EV_READ | EV_PERSIST,
                [](evutil_socket_t, short, void* w) { static_cast<worker*>(w)->poll_reads(); },
                this);
            add_event(*ticked_);
        }
    }
    ~worker() { connections_.clear(); }

    event_base* base() noexcept { return base_.get(); }
    std::atomic<std::size_t>& clients() noexcept { return clients_; }

    // What other threads have to tell this one. A letter is made before it is known when it will be
    // sent; sending needs no memory.
    class letter {
      public:
        virtual ~letter() = default;
        virtual void open(worker& here) noexcept = 0;

      private:
        friend class worker;
        std::unique_ptr<letter> behind;
    };
    // Any thread.
    void post(std::unique_ptr<letter> sent) noexcept {
        {
            const std::lock_guard hold(mail_lock_);
            std::unique_ptr<letter>& end =
                last_letter_ == nullptr ? letters_ : last_letter_->behind;
            end = std::move(sent);
            last_letter_ = end.get();
        }
        event_active(mail_.get(), EV_TIMEOUT, 0);
    }

    // Any thread: the connection is this thread's from now on. Throws std::bad_alloc.
    void take(arrival arrived) {
        struct arrival_letter final : letter {
            explicit arrival_letter(arrival a) : arrived(std::move(a)) {}
            void open(worker& here) noexcept override { here.begin(std::move(arrived)); }
            arrival arrived;
        };
        post(std::make_unique<arrival_letter>(std::move(arrived)));
    }

    void close(connection& c) noexcept {
        by_id_.erase(c.client().id);
        connections_.erase(c.place);
    }

    // Tells this thread when the data that a client waits for has been read, or could not be.
    class data_waiter final : public cold_reader::waiter, public letter {
      public:
        data_waiter(worker& its, std::uint64_t client) noexcept : its_(its), client_(client) {}
        void is_here(std::unique_ptr<waiter> self, bool readable) noexcept override {
            readable_ = readable;
            self.release(); // this
            its_.post(std::unique_ptr<letter>(this));
        }
        void open(worker& here) noexcept override {
            const auto its = here.by_id_.find(client_);
            if (its != here.by_id_.end()) its->second->resume(readable_, std::move(found));
        }

      private:
        worker& its_;
        std::uint64_t client_;
        bool readable_ = true;
    };

    // The client is told by look_again(). False: not begun. Throws std::bad_alloc.
    bool begin_read(const page_range& pages, std::uint64_t client) {
        if (ticked_ == nullptr) return false;
        if (!reads_) reads_.emplace(*cold_.memory());
        const bool first = reads_->empty();
        if (!reads_->begin(pages, client, begun_reads::clock::now())) return false;
        if (first) tick_once();
        return true;
    }

    void run() { event_base_loop(base_.get(), EVLOOP_NO_EXIT_ON_EMPTY); }
    // An event: one that comes before the loop runs is not lost, as loopbreak's flag is.
    void stop() { event_base_loopexit(base_.get(), nullptr); }
    // After the loop: what is ready is sent as far as the sockets take it.
    void finish() {
        for (auto& c : connections_) c->flush();
        connections_.clear();
    }

    instance& server;
    std::array<char, receive_bytes> received;
    output spare; // lent to the connection that is executing

    cold_reader& cold() noexcept { return cold_; }

  private:
    // How often reads that were begun are looked at. A disk needs some 80 us; each look costs 1 to 2.
    static constexpr std::chrono::nanoseconds read_tick{std::chrono::microseconds(100)};
    void tick_once() noexcept {
        const itimerspec soon{{0, 0}, {0, read_tick.count()}};
        ::timerfd_settime(ticks_.get(), 0, &soon, nullptr);
    }
    void poll_reads() noexcept {
        std::uint64_t ticks = 0;
        if (::read(ticks_.get(), &ticks, sizeof ticks) < 0) ticks = 0; // armed anew meanwhile
        reads_->poll(begun_reads::clock::now(), [this](std::uint64_t client, bool is_here) {
            const auto its = by_id_.find(client);
            if (its != by_id_.end()) its->second->look_again(is_here);
        });
        if (!reads_->empty()) tick_once();
    }
    void read_mail() noexcept {
        std::unique_ptr<letter> next;
        {
            const std::lock_guard hold(mail_lock_);
            next = std::move(letters_);
            last_letter_ = nullptr;
        }
        while (next != nullptr) {
            next->open(*this);
            next = std::move(next->behind);
        }
    }

    // Without memory the client is closed.
    void begin(arrival arrived) noexcept {
        try {
            connections_.push_front(
                std::make_unique<connection>(*this, std::move(arrived), server.next_client_id()));
            connection& c = *connections_.front();
            c.place = connections_.begin();
            try {
                by_id_.emplace(c.client().id, &c);
            } catch (...) {
                connections_.pop_front();
                throw;
            }
            if (!c.begin()) close(c);
        } catch (const std::bad_alloc&) {
        }
    }

    void each_second() {
        const std::int64_t most = server.options.timeout_seconds;
        if (most <= 0) return;
        update_now();
        for (auto c = connections_.begin(); c != connections_.end();) {
            auto next = std::next(c);
            if ((*c)->is_idle(now_ms(), most)) close(**c);
            c = next;
        }
    }

    cold_reader& cold_;
    std::unique_ptr<event_base, base_free_function> base_;
    owned_descriptor
        ticks_; // a timer finer than the loop's; -1: there is none, and no read is begun
    event_ptr second_, mail_, ticked_;
    std::optional<begun_reads> reads_; // from the first one on
    std::atomic<std::size_t> clients_{0};
    std::mutex mail_lock_;
    std::unique_ptr<letter> letters_; // which may count clients
    letter* last_letter_ = nullptr;   // of them
    std::list<std::unique_ptr<connection>> connections_;
    std::unordered_map<std::uint64_t, connection*> by_id_;
};

connection::connection(worker& its_thread, arrival arrived, std::uint64_t id)
    : counted_(std::move(arrived.counted)), socket_(std::move(arrived.socket)), thread_(its_thread),
      client_(id, std::move(arrived.address), std::move(arrived.local), socket_.get()) {
    client_.authenticated = !thread_.server.options.has_password();
    client_.last_used_ms = now_ms();
    thread_.server.enter(client_);
}

connection::~connection() {
    thread_.server.end(client_);
    readable_.reset();
    writable_.reset();
    // Out of the register first: CLIENT KILL must not meet a descriptor that is another one's by then.
    thread_.server.leave(client_);
}

bool connection::begin() {
    readable_.reset(event_new(
        thread_.base(), client_.descriptor, EV_READ | EV_PERSIST,
        [](evutil_socket_t, short, void* c) {
            static_cast<connection*>(c)->or_close(&connection::on_readable);
        },
        this));
    writable_.reset(event_new(
        thread_.base(), client_.descriptor, EV_WRITE | EV_PERSIST,
        [](evutil_socket_t, short, void* c) {
            static_cast<connection*>(c)->or_close(&connection::on_writable);
        },
        this));
    if (readable_ == nullptr || writable_ == nullptr) return false;
    watch_reading(true);
    return reading_;
}

void connection::watch_reading(bool on) {
    if (on == reading_) return;
    if ((on ? event_add(readable_.get(), nullptr) : event_del(readable_.get())) == 0) reading_ = on;
}
void connection::watch_writing(bool on) {
    if (on == writing_) return;
    if ((on ? event_add(writable_.get(), nullptr) : event_del(writable_.get())) == 0) writing_ = on;
}

void connection::or_close(bool (connection::*step)()) {
    bool open = false;
    try {
        open = (this->*step)();
    } catch (const std::bad_alloc&) {
        // Not through the loop, which is C. What is half done of this client's ends with it.
    }
    if (!open) thread_.close(*this); // which ends this object
}

bool connection::on_readable() {
    update_now();
    client_.last_used_ms = now_ms();
    const settings& options = thread_.server.options;
    std::size_t taken = 0;
    while (taken < fair_share && !ended_) {
        const std::size_t kept = in_.size() - in_at_;
        // Straight into place where a large argument is known to be under way.
        const bool large = kept > 0 && parser_.needed() > kept + receive_bytes;
        ssize_t n = 0;
        if (large) {
            if (in_at_ > 0) {
                in_.erase(0, in_at_);
                in_at_ = 0;
            }
            const std::size_t room = std::min(parser_.needed() - kept, std::size_t{1} << 20);
            const std::size_t had = in_.size();
            // Twice as much as there is, at most what is needed: linear, and not more than was sent.
            if (in_.capacity() < had + room)
                in_.reserve(std::min(parser_.needed(), std::max(2 * had, had + room)));
            in_.resize(had + room);
            n = ::read(client_.descriptor, in_.data() + had, room);
            in_.resize(had + (n > 0 ? static_cast<std::size_t>(n) : 0));
        } else {
            n = ::read(client_.descriptor, thread_.received.data(), thread_.received.size());
        }
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) break;
            return false;
        }
        if (n == 0) {
            ended_ = true;
            watch_reading(false);
            break;
        }
        const auto size = static_cast<std::size_t>(n);
        taken += size;
        thread_.server.bytes_in += size;
        if (closing_) continue; // what comes after QUIT or an error is not looked at
        if (!large && kept == 0 && !paused_ && !waiting_) {
            in_.clear();
            in_at_ = 0;
            std::size_t used = 0;
            const std::string_view bytes(thread_.received.data(), size);
            if (execute(bytes, used) == progress::failed) return false;
            in_.assign(bytes.substr(used));
        } else {
            if (!large) in_.append(thread_.received.data(), size);
            if (!paused_ && !waiting_ && !execute_kept()) return false;
        }
        const std::size_t waits = in_.size() - in_at_;
        if (waits > options.query_buffer_limit) {
            if (!paused_ && !waiting_) {
                ++thread_.server.closed_for_input;
                return false;
            }
            // Requests behind replies that are not read: they wait in the socket.
            watch_reading(false);
            break;
        }
        // Less than was asked for: there is no more at present.
        if (size < (large ? std::size_t{1} << 20 : thread_.received.size())) break;
    }
    return settled();
}

bool connection::on_writable() {
    if (!flush()) return false;
    if (paused_ && out_.pending() <= output_resume) {
        update_now();
        paused_ = false;
        if (!execute_kept()) return false;
    }
    return settled();
}

void connection::resume(bool readable, gathered found) noexcept {
    request_is_warm_ = true;
    found_ = std::move(found);
    cold_failed_ = !readable;
    go_on();
}

void connection::look_again(bool is_here) noexcept {
    if (!is_here) begun_.was_late();
    go_on();
}

void connection::go_on() noexcept {
    update_now();
    waiting_ = false;
    bool open = true;
    try {
        open = execute_kept() && settled();
    } catch (const std::bad_alloc&) {
        open = false;
    }
    if (!open) thread_.close(*this);
}

// What has to be said to the loop after any step. False: close.
bool connection::settled() {
    if (!flush()) return false;
    if (out_.pending() > thread_.server.options.output_buffer_limit) {
        ++thread_.server.closed_for_output;
        thread_.server.log(fmt::format("client {} ({}) closed: {} bytes of replies wait for it",
                                       client_.id, client_.address, out_.pending()));
        return false;
    }
    const bool empty = out_.empty();
    // A client that was paused goes on when the loop says that it can be written to, at once if all is sent.
    watch_writing(!empty || paused_);
    if (closing_ && empty) return false;
    if (ended_ && empty && !waiting_ && !paused_) return false;
    if (!ended_ && !reading_ &&
        ((!paused_ && !waiting_) ||
         in_.size() - in_at_ <= thread_.server.options.query_buffer_limit / 2))
        watch_reading(true);
    client_.input_bytes = in_.capacity() > 64 ? in_.capacity() : 0;
    client_.output_bytes = out_.pending();
    return true;
}

bool connection::execute_kept() {
    std::size_t used = 0;
    const progress how = execute(std::string_view(in_).substr(in_at_), used);
    in_at_ += used;
    if (in_at_ == in_.size()) {
        in_at_ = 0;
        if (in_.capacity() > receive_bytes)
            std::string().swap(in_);
        else
            in_.clear();
    } else if (in_at_ > receive_bytes && in_at_ > in_.size() / 2) {
        in_.erase(0, in_at_);
        in_at_ = 0;
    }
    return how != progress::failed;
}

// True: the request waits.
bool connection::wait_for_cold(arguments args) {
    cold_reader& cold = thread_.cold();
    auto wanted = cold.look(client_, args, begun_.last());
    if (!wanted) return false;
    const bool waits_first = !begun_.any();
    bool waits = false;
    if (wanted->pages.bytes != 0) {
        waits = thread_.begin_read(wanted->pages, client_.id);
        if (!waits) wanted = cold.look(client_, args);
        if (!wanted) return false;
    }
    if (waits) {
        begun_.add(wanted->pages);
    } else {
        waits = cold.read(std::move(*wanted),
                          std::make_unique<worker::data_waiter>(thread_, client_.id));
    }
    if (waits && waits_first) ++thread_.server.cold_reads;
    return waits;
}

connection::progress connection::execute(std::string_view bytes, std::size_t& at) {
    instance& server = thread_.server;
    // The reply gathers in the thread's output, whose memory is there already.
    if (out_.empty()) std::swap(out_, thread_.spare);
    progress how = progress::all;
    while (at < bytes.size() && !closing_) {
        if (out_.pending() > output_pause) {
            if (!flush()) return progress::failed;
            if (out_.pending() > output_pause) {
                paused_ = true;
                how = progress::paused;
                break;
            }
        }
        const auto result =
            parser_.parse(bytes.substr(at), client_.authenticated || !server.options.has_password(),
                          server.options.max_bulk);
        if (result == request_parser::result::incomplete) break;
        if (result == request_parser::result::error) {
            reply(out_, client_.protocol).error(parser_.error());
            closing_ = true;
            break;
        }
        const auto& args = parser_.arguments();
        if (!args.empty()) {
            if (!request_is_warm_ && thread_.cold().is_at_work()) {
                if (wait_for_cold(args)) {
                    // Parsed again when the data is there.
                    parser_.reset();
                    waiting_ = true;
                    how = progress::paused;
                    break;
                }
            }
            if (cold_failed_) {
                ++server.cold_read_errors;
                // Of a transaction's commands EXEC alone waits for data.
                const bool exec = client_.in_multi;
                if (exec) server.end(client_);
                reply(out_, client_.protocol)
                    .error(exec ? "EXECABORT Transaction discarded because data could not be read "
                                  "from the cold file"
                                : "ERR the key's data could not be read from the cold file");
                cold_failed_ = false;
            } else {
                if (found_.complete) client_.found = &found_;
                server.execute(client_, args, out_);
                client_.found = nullptr;
            }
            if (request_is_warm_) found_ = {};
            request_is_warm_ = false;
            begun_ = {};
        }
        at += parser_.used();
        if (args.size() > 4096) parser_.release_memory();
        if (client_.close_after_reply) closing_ = true;
    }
    return how;
}

bool connection::flush() {
    while (!out_.empty()) {
        iovec pieces[pieces_at_once];
        msghdr message{};
        message.msg_iov = pieces;
        message.msg_iovlen = out_.pieces(pieces, pieces_at_once);
        const ssize_t n =
            message.msg_iovlen == 1
                ? ::send(client_.descriptor, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL)
                : ::sendmsg(client_.descriptor, &message, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EINTR) continue;
            if (errno == EAGAIN || errno == EWOULDBLOCK) return true;
            return false;
        }
        thread_.server.bytes_out += static_cast<std::size_t>(n);
        out_.sent(static_cast<std::size_t>(n));
    }
    // Its memory goes back to the thread, for the next connection.
    if (thread_.spare.text().capacity() < out_.text().capacity()) std::swap(out_, thread_.spare);
    if (out_.text().capacity() > 64) out_ = output();
    return true;
}

std::string address_text(const sockaddr_storage& address, const std::string& unix_path) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET) {
        const auto& in = reinterpret_cast<const sockaddr_in&>(address);
        ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
        return fmt::format("{}:{}", text, ntohs(in.sin_port));
    }
    if (address.ss_family == AF_INET6) {
        const auto& in = reinterpret_cast<const sockaddr_in6&>(address);
        ::inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
        return fmt::format("[{}]:{}", text, ntohs(in.sin6_port));
    }
    return unix_path + ":0";
}

bool is_loopback(const sockaddr* address) {
    if (address->sa_family == AF_INET)
        return (ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr) >> 24) == 127;
    if (address->sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
    return false;
}

// SIGTERM and SIGINT. Not libevent's: its loop hears of a signal when its thread is back, and that may be
// waiting for the child of SAVE.
class signals_that_stop {
  public:
    signals_that_stop() = default;
    signals_that_stop(const signals_that_stop&) = delete;
    signals_that_stop& operator=(const signals_that_stop&) = delete;
    ~signals_that_stop() { end(); }

    // From now on a signal sets `told`, and then the descriptor is readable. False: errno says why not.
    bool watch(std::atomic<bool>& told) noexcept {
        // Made once: a handler that has begun may write to it after end().
        if (wake_ < 0) wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        descriptor_ = wake_;
        if (descriptor_ < 0) return false;
        std::uint64_t told_before = 0;
        if (::read(descriptor_, &told_before, sizeof told_before) < 0) told_before = 0;
        told_ = &told;
        struct sigaction how{};
        how.sa_handler = [](int) {
            const int number = errno;
            if (std::atomic<bool>* const its = told_) *its = true;
            const std::uint64_t one = 1;
            if (::write(wake_, &one, sizeof one) < 0) errno = number; // it is readable already
            errno = number;
        };
        how.sa_flags = SA_RESTART;
        for (std::size_t i = 0; i < std::size(numbers); ++i)
            ::sigaction(numbers[i], &how, &before_[i]);
        return true;
    }
    // What the signals did before.
    void end() noexcept {
        if (descriptor_ < 0) return;
        for (std::size_t i = 0; i < std::size(numbers); ++i)
            ::sigaction(numbers[i], &before_[i], nullptr);
        told_ = nullptr;
        descriptor_ = -1;
    }
    int descriptor() const noexcept { return descriptor_; }

  private:
    static constexpr int numbers[] = {SIGTERM, SIGINT};
    // For the handler, which has no argument: of the one network that runs.
    static inline std::atomic<int> wake_{-1};
    static inline std::atomic<std::atomic<bool>*> told_{nullptr};
    static_assert(std::atomic<int>::is_always_lock_free &&
                  std::atomic<std::atomic<bool>*>::is_always_lock_free);

    int descriptor_ = -1;
    struct sigaction before_[std::size(numbers)]{};
};

} // namespace

struct network::state {
    explicit state(instance& its_server)
        : server(its_server), cold(its_server.keys, its_server.options, kernel_cold_memory(),
                                   [&its_server] { return its_server.save(); }) {}
    ~state() {
        cold.stop(); // which tells the workers
        for (const int s : sockets) ::close(s);
        if (!unix_path.empty()) ::unlink(unix_path.c_str());
    }

    instance& server;
    cold_reader cold;
    std::vector<std::unique_ptr<worker>> workers;
    std::vector<int> sockets;
    signals_that_stop stop_signals;
    std::vector<event_ptr> accepting;
    event_ptr timer, again, signalled;
    evhttp* metrics = nullptr;
    std::string unix_path;
    unsigned port = 0;
    bool said_no_descriptors = false;
    std::atomic<bool> stopping{false};

    void stop_all() {
        if (stopping.exchange(true)) return;
        server.stopping = true;
        for (auto& w : workers) w->stop();
    }

    void accept_some(int socket) {
        for (int n = 0; n < 64; ++n) {
            sockaddr_storage address{};
            socklen_t size = sizeof address;
            owned_descriptor accepted(::accept4(socket, reinterpret_cast<sockaddr*>(&address),
                                                &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
            const int client = accepted.get();
            if (client < 0) {
                if (errno == EINTR || errno == ECONNABORTED) continue;
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
                    if (!said_no_descriptors)
                        server.log("no connection can be accepted for now: " + reason(errno));
                    said_no_descriptors = true;
                    // Later, when others have closed; without a pause this would turn in the loop.
                    for (auto& e : accepting) event_del(e.get());
                    const timeval pause{0, 100'000};
                    event_add(again.get(), &pause);
                }
                return;
            }
            ++server.connections;
            std::size_t all = 0;
            worker* least = nullptr;
            for (auto& w : workers) {
                all += w->clients();
                if (least == nullptr || w->clients() < least->clients()) least = w.get();
            }
            if (all >= server.options.max_clients) {
                ++server.rejected_connections;
                static constexpr std::string_view full = "-ERR max number of clients reached\r\n";
                if (::send(client, full.data(), full.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
                    server.log("a client too many could not be told");
                continue;
            }
            if (address.ss_family == AF_INET || address.ss_family == AF_INET6) {
                const int on = 1;
                ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                ::setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
            }
            sockaddr_storage here{};
            size = sizeof here;
            ::getsockname(client, reinterpret_cast<sockaddr*>(&here), &size);
            try {
                least->take({std::move(accepted), counted_client(least->clients()),
                             address_text(address, unix_path), address_text(here, unix_path)});
            } catch (const std::bad_alloc&) {
                // It is closed.
            }
        }
    }

    std::string listen_tcp(const std::string& address) {
        addrinfo hints{}, *found = nullptr;
        hints.ai_socktype = SOCK_STREAM;
        hints.ai_flags = AI_PASSIVE | AI_NUMERICHOST;
        const std::string name = address == "*" ? "0.0.0.0" : address;
        const int failed =
            ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &found);
        if (failed != 0)
            return fmt::format("--bind: '{}' is no address: {}", address, ::gai_strerror(failed));
        const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
        if (!is_loopback(found->ai_addr) && !server.options.has_password())
            return fmt::format("--bind {}: other machines could reach the server; that needs "
                               "--requirepass (or bind to 127.0.0.1)",
                               address);
        const int s = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s < 0) return fmt::format("--bind {}: {}", address, reason(errno));
        sockets.push_back(s);
        const int on = 1;
        ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (found->ai_family == AF_INET6)
            ::setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        if (::bind(s, found->ai_addr, found->ai_addrlen) != 0 ||
            ::listen(s, static_cast<int>(server.options.backlog)) != 0)
            return fmt::format("cannot listen on {} port {}: {}", address, port, reason(errno));
        return "";
    }

    std::string listen_unix(const std::string& path) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path.size() >= sizeof address.sun_path)
            return fmt::format("--unixsocket {}: longer than {} characters", path,
                               sizeof address.sun_path - 1);
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        const auto* generic = reinterpret_cast<const sockaddr*>(&address);
        // A socket that nothing listens on is left over from a server that was killed.
        struct stat about{};
        if (::lstat(path.c_str(), &about) == 0) {
            if (!S_ISSOCK(about.st_mode))
                return fmt::format("--unixsocket {}: there is a file that is no socket", path);
            // The child of a background save has it open until it runs, also when its server was killed.
            bool used = true;
            for (int tries = 0; used && tries < 20; ++tries) {
                if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
                const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
                used = probe >= 0 &&
                       (::connect(probe, generic, sizeof address) == 0 || errno == EAGAIN);
                if (probe >= 0) ::close(probe);
            }
            if (used) return fmt::format("--unixsocket {}: another server listens there", path);
            ::unlink(path.c_str());
        }
        const int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (s < 0) return fmt::format("--unixsocket {}: {}", path, reason(errno));
        sockets.push_back(s);
        // Before the name is there: nobody connects in between who must not.
        ::fchmod(s, server.options.unix_socket_mode);
        if (::bind(s, generic, sizeof address) != 0)
            return fmt::format("--unixsocket {}: {}", path, reason(errno));
        unix_path = path;
        if (::chmod(path.c_str(), server.options.unix_socket_mode) != 0 ||
            ::listen(s, static_cast<int>(server.options.backlog)) != 0)
            return fmt::format("--unixsocket {}: {}", path, reason(errno));
        return "";
    }

    // As many descriptors as there may be clients, or fewer clients.
    void raise_descriptors() {
        constexpr std::size_t own = 64;
        rlimit limit{};
        if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
        const std::size_t wanted = server.options.max_clients + own;
        if (limit.rlim_cur < wanted) {
            limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
            ::setrlimit(RLIMIT_NOFILE, &limit);
            ::getrlimit(RLIMIT_NOFILE, &limit);
        }
        if (limit.rlim_cur < wanted) {
            const std::size_t possible = limit.rlim_cur > own ? limit.rlim_cur - own : 1;
            server.log(fmt::format("maxclients is {} instead of {}: the limit of open files is {}",
                                   possible, server.options.max_clients.load(), limit.rlim_cur));
            server.options.max_clients = possible;
        }
    }
};

network::network(instance& server) {
    static const bool threads = evthread_use_pthreads() == 0;
    if (!threads) throw std::runtime_error("libevent has no threads here");
    state_ = std::make_unique<state>(server);
}

network::~network() {
    if (state_->metrics != nullptr) evhttp_free(state_->metrics);
}

unsigned network::port() const noexcept { return state_->port; }

std::string network::listen() {
    state& s = *state_;
    const settings& options = s.server.options;
    s.raise_descriptors();
    s.port = options.port;
    if (options.port == 0 && options.unix_socket.empty())
        return "nothing to listen on: --port is 0 and there is no --unixsocket";
    if (options.port != 0)
        for (const std::string& address : options.bind)
            if (const std::string why = s.listen_tcp(address); !why.empty()) return why;
    if (!options.unix_socket.empty())
        if (const std::string why = s.listen_unix(options.unix_socket); !why.empty()) return why;
    for (unsigned i = 0; i < options.threads; ++i)
        s.workers.push_back(std::make_unique<worker>(s.server, s.cold));
    worker& first = *s.workers.front();
    for (const int socket : s.sockets) {
        s.accepting.push_back(new_event(
            first.base(), socket, EV_READ | EV_PERSIST,
            [](evutil_socket_t ready, short, void* st) {
                static_cast<state*>(st)->accept_some(ready);
            },
            &s));
        add_event(*s.accepting.back());
    }
    s.again = new_event(
        first.base(), -1, 0,
        [](evutil_socket_t, short, void* st) {
            auto* self = static_cast<state*>(st);
            for (auto& e : self->accepting) event_add(e.get(), nullptr);
        },
        &s);
    s.timer = new_event(
        first.base(), -1, EV_PERSIST,
        [](evutil_socket_t, short, void* st) {
            auto* self = static_cast<state*>(st);
            try {
                // What has ended lies on the disk for the most part: no I/O thread looks at it.
                const bool elsewhere = self->cold.is_at_work();
                self->server.tick(!elsewhere);
                if (elsewhere) self->cold.refresh();
                if (elsewhere && self->server.options.active_expire) self->cold.expire();
            } catch (const std::bad_alloc&) {
                // Again in a tenth of a second.
            }
        },
        &s);
    const timeval tenth{0, 100'000};
    add_event(*s.timer, &tenth);
    if (!s.stop_signals.watch(s.server.stopping))
        return "no descriptor for signals: " + reason(errno);
    s.signalled = new_event(
        first.base(), s.stop_signals.descriptor(), EV_READ | EV_PERSIST,
        [](evutil_socket_t, short, void* st) { static_cast<state*>(st)->stop_all(); }, &s);
    add_event(*s.signalled);
    if (options.metrics_port != 0) {
        s.metrics = evhttp_new(first.base());
        if (s.metrics == nullptr ||
            evhttp_bind_socket(s.metrics, "127.0.0.1",
                               static_cast<std::uint16_t>(options.metrics_port)) != 0)
            return fmt::format("--metrics-port {}: {}", options.metrics_port, reason(errno));
        evhttp_set_timeout(s.metrics, 10);
        evhttp_set_max_headers_size(s.metrics, 16 * 1024);
        evhttp_set_max_body_size(s.metrics, 16 * 1024);
        evhttp_set_allowed_methods(s.metrics, EVHTTP_REQ_GET);
        evhttp_set_cb(
            s.metrics, "/metrics",
            [](evhttp_request* request, void* st) {
                std::string text;
                try {
                    text = static_cast<state*>(st)->server.metrics();
                } catch (const std::bad_alloc&) {
                }
                evbuffer* body = text.empty() ? nullptr : evbuffer_new();
                if (body == nullptr) return evhttp_send_error(request, 500, nullptr);
                evbuffer_add(body, text.data(), text.size());
                evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type",
                                  "text/plain; version=0.0.4");
                evhttp_send_reply(request, 200, "OK", body);
                evbuffer_free(body);
            },
            &s);
    }
    if (options.hints == "pageout" && managed_by != managing::none) {
        s.cold.start(options.cold_threads);
        s.server.cold = [&s] { return s.cold.memory(); };
    }
    s.server.stop_requested = [&s](bool) { s.stop_all(); };
    s.server.kill = [](const session& client) { ::shutdown(client.descriptor, SHUT_RDWR); };
    return "";
}

void network::run() {
    state& s = *state_;
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < s.workers.size(); ++i)
        threads.emplace_back([&s, i] { s.workers[i]->run(); });
    s.workers.front()->run();
    s.stop_all();
    for (std::thread& t : threads) t.join();
    s.cold.stop();
    for (auto& w : s.workers) w->finish();
    if (s.metrics != nullptr) evhttp_free(std::exchange(s.metrics, nullptr));
    s.accepting.clear();
    s.signalled.reset();
    s.stop_signals.end();
    s.timer.reset();
    s.again.reset();
    s.server.stopping = false; // for the snapshot at the end
}

void network::stop() { state_->stop_all(); }

} // namespace crestdb::server
