// SPDX-License-Identifier: MIT
#include "tools/server/server_bench.hpp"

#include "tools/bench/interrupt.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace obase::tools {
namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

class scratch_directory {
  public:
    scratch_directory() {
        char name[] =
            "/tmp/obase-server-XXXXXX"; // short: a socket's path has at most 107 characters
        if (::mkdtemp(name) == nullptr) fail("cannot make a directory in /tmp");
        path_ = name;
    }
    ~scratch_directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    const std::string& path() const noexcept { return path_; }

  private:
    std::string path_;
};

std::string in_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
        if (::access((folder + "/" + program).c_str(), X_OK) == 0) return folder + "/" + program;
    return "";
}

int connected_to(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0) fail("socket");
    for (int tries = 0; tries < 200; ++tries) {
        if (::connect(s, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
            return s;
        if (errno != EAGAIN) break;
        ::usleep(1000);
    }
    ::close(s);
    return -1;
}

// A server process with its protocol.
class system_under_test {
  public:
    system_under_test(std::string name, std::vector<std::string> words, std::string socket,
                      bool resp)
        : name_(std::move(name)), socket_(std::move(socket)), resp_(resp) {
        std::vector<char*> arguments;
        for (std::string& word : words) arguments.push_back(word.data());
        arguments.push_back(nullptr);
        const pid_t parent = ::getpid();
        {
            const interrupts_held held;
            process_ = ::fork();
            if (process_ == 0) {
                let_interrupts_end_this_process();
                held.let_go();
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (::getppid() != parent) ::_exit(1);
                const int nowhere = ::open("/dev/null", O_RDWR);
                ::dup2(nowhere, STDIN_FILENO);
                ::dup2(nowhere, STDOUT_FILENO);
                ::dup2(nowhere, STDERR_FILENO);
                ::execv(arguments[0], arguments.data());
                ::_exit(127);
            }
        }
        if (process_ < 0) fail("fork");
        for (int tries = 0; tries < 1000; ++tries) {
            if (const int s = connected_to(socket_); s >= 0) {
                ::close(s);
                empty_rss_ = rss();
                return;
            }
            int status = 0;
            if (::waitpid(process_, &status, WNOHANG) == process_) {
                process_ = -1;
                break;
            }
            ::usleep(10'000);
        }
        stop();
        throw std::runtime_error(fmt::format("{} did not start", words[0]));
    }
    ~system_under_test() { stop(); }
    system_under_test(const system_under_test&) = delete;
    system_under_test& operator=(const system_under_test&) = delete;

    const std::string& name() const noexcept { return name_; }
    const std::string& socket() const noexcept { return socket_; }

    std::string request(bool set, std::string_view key, std::string_view value) const {
        if (resp_)
            return set ? fmt::format("*3\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n{}\r\n", key.size(),
                                     key, value.size(), value)
                       : fmt::format("*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.size(), key);
        return set ? fmt::format("set {} 0 0 {}\r\n{}\r\n", key, value.size(), value)
                   : fmt::format("get {}\r\n", key);
    }
    std::string expected(bool set, std::string_view key, std::string_view value) const {
        if (resp_) return set ? "+OK\r\n" : fmt::format("${}\r\n{}\r\n", value.size(), value);
        return set ? "STORED\r\n"
                   : fmt::format("VALUE {} 0 {}\r\n{}\r\nEND\r\n", key, value.size(), value);
    }

    double cpu_seconds() const {
        double nanoseconds = 0;
        std::error_code ignored;
        for (const auto& task :
             std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process_), ignored)) {
            std::ifstream file(task.path() / "schedstat");
            double ran = 0;
            if (file >> ran) nanoseconds += ran;
        }
        return nanoseconds / 1e9;
    }
    std::uint64_t rss() const {
        std::ifstream file(fmt::format("/proc/{}/statm", process_));
        std::uint64_t size = 0, resident = 0;
        file >> size >> resident;
        return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    }
    std::uint64_t used() const {
        const std::uint64_t now = rss();
        return now > empty_rss_ ? now - empty_rss_ : 0;
    }
    std::uint64_t io_bytes() const {
        std::ifstream file(fmt::format("/proc/{}/io", process_));
        std::uint64_t sum = 0, value = 0;
        for (std::string field; file >> field >> value;)
            if (field == "read_bytes:" || field == "write_bytes:") sum += value;
        return sum;
    }

  private:
    void stop() noexcept {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        process_ = -1;
    }

    std::string name_, socket_;
    bool resp_;
    pid_t process_ = -1;
    std::uint64_t empty_rss_ = 0;
};

struct run_result {
    double seconds = 0, cpu_seconds = 0;
    std::vector<double> latencies_us; // of a client's turn: from its requests to the last reply
    std::uint64_t io_bytes = 0;
};

std::string key_of(std::uint64_t record) { return fmt::format("key:{:026}", record); }

// Sends `requests` requests, every client `pipeline` at a time. Throws when a reply is another one than
// expected. `in_order`: each record once.
run_result ask(system_under_test& system, bool set, std::uint64_t requests, unsigned clients,
               unsigned pipeline, std::uint64_t records, const std::string& value, bool in_order,
               std::uint64_t seed) {
    struct one {
        int socket = -1;
        std::string request, expected;
        std::size_t sent = 0, received = 0;
        clock::time_point begin;
        ~one() {
            if (socket >= 0) ::close(socket);
        }
    };
    std::vector<one> all(clients);
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    if (poll < 0) fail("epoll");
    const std::unique_ptr<const int, void (*)(const int*)> closes(
        &poll, [](const int* p) { ::close(*p); });
    std::mt19937_64 random(seed);
    std::uint64_t begun = 0, done = 0;
    run_result result;
    result.latencies_us.reserve(requests / pipeline + clients);
    const auto next = [&](one& c) {
        c.request.clear();
        c.expected.clear();
        c.sent = c.received = 0;
        for (unsigned i = 0; i < pipeline && begun < requests; ++i, ++begun) {
            const std::string key = key_of(in_order ? begun : random() % records);
            c.request += system.request(set, key, value);
            c.expected += system.expected(set, key, value);
        }
        c.begin = clock::now();
        return !c.request.empty();
    };
    const auto push = [&](one& c) {
        while (c.sent < c.request.size()) {
            const ssize_t n = ::send(c.socket, c.request.data() + c.sent, c.request.size() - c.sent,
                                     MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (n < 0) fail(system.name() + " closed a connection");
            c.sent += static_cast<std::size_t>(n);
        }
    };
    for (one& c : all) {
        c.socket = connected_to(system.socket());
        if (c.socket < 0) fail("cannot connect to " + system.name());
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &c;
        if (::epoll_ctl(poll, EPOLL_CTL_ADD, c.socket, &event) != 0) fail("epoll");
    }
    const double cpu = system.cpu_seconds();
    const std::uint64_t io = system.io_bytes();
    const auto begin = clock::now();
    for (one& c : all)
        if (next(c)) push(c);
    std::vector<char> buffer(1 << 18);
    while (done < requests) {
        if (interrupted()) throw interruption("interrupted");
        epoll_event ready[64];
        const int n = ::epoll_wait(poll, ready, 64, 10'000);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) throw std::runtime_error(system.name() + " did not answer for ten seconds");
        for (int i = 0; i < n; ++i) {
            one& c = *static_cast<one*>(ready[i].data.ptr);
            const ssize_t got = ::recv(c.socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0) fail(system.name() + " closed a connection");
            const auto size = static_cast<std::size_t>(got);
            if (c.received + size > c.expected.size() ||
                std::memcmp(buffer.data(), c.expected.data() + c.received, size) != 0)
                throw std::runtime_error(
                    fmt::format("{} sent another reply than expected", system.name()));
            c.received += size;
            if (c.received < c.expected.size()) {
                push(c);
                continue;
            }
            result.latencies_us.push_back(
                std::chrono::duration<double, std::micro>(clock::now() - c.begin).count());
            done += std::min<std::uint64_t>(pipeline, requests - done);
            if (next(c)) push(c);
        }
    }
    result.seconds = std::chrono::duration<double>(clock::now() - begin).count();
    result.cpu_seconds = system.cpu_seconds() - cpu;
    result.io_bytes = system.io_bytes() - io;
    return result;
}

double quantile(std::vector<double>& sorted, double q) {
    if (sorted.empty()) return 0;
    return sorted[std::min(sorted.size() - 1,
                           static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
}

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    return words;
}

} // namespace

std::vector<std::string> server_systems() {
    return {"crestdb", "crestdb-none", "redis", "memcached"};
}

bench_result bench_server(const server_bench_settings& s) {
    bench_result result;
    const scratch_directory scratch;
    const std::string crestdb =
        std::filesystem::read_symlink("/proc/self/exe").replace_filename("crestdb").string();
    std::vector<std::unique_ptr<system_under_test>> systems;
    result.json["left_out"] = nlohmann::json::array();
    for (const std::string& name : s.systems) {
        const std::string socket = scratch.path() + "/" + name;
        std::vector<std::string> words;
        if (name.starts_with("crestdb")) {
            words = {crestdb, "--port",       "0",        "--unixsocket", socket,
                     "--dir", scratch.path(), "--no-load"};
            if (name == "crestdb-none") words.insert(words.end(), {"--protocol", "none"});
            for (const std::string& word : words_of(s.crestdb_options)) words.push_back(word);
        } else if (name == "redis") {
            words = {in_path("redis-server"),
                     "--port",
                     "0",
                     "--unixsocket",
                     socket,
                     "--save",
                     "",
                     "--dir",
                     scratch.path()};
        } else {
            words = {in_path("memcached"), "-s", socket, "-m", "8192", "-t", "1", "-c", "1024"};
            if (::geteuid() == 0) words.insert(words.end(), {"-u", "root"});
        }
        if (words[0].empty() || ::access(words[0].c_str(), X_OK) != 0) {
            result.json["left_out"].push_back(name);
            continue;
        }
        systems.push_back(
            std::make_unique<system_under_test>(name, words, socket, name != "memcached"));
    }
    const std::string value(s.value_bytes, 'v');
    for (auto& system : systems) {
        tell(fmt::format("loading {}", system->name()));
        ask(*system, true, s.records, 1, 100, s.records, value, true, 1);
    }
    // [what, pipeline][system]: one entry per repetition.
    struct cell {
        std::vector<double> throughput, cpu_us, p50, p99, p999;
        std::uint64_t io = 0;
    };
    std::map<std::pair<std::string, unsigned>, std::map<std::string, cell>> cells;
    for (std::size_t pair = 0; pair < s.pairs && !interrupted(); ++pair)
        for (const unsigned pipeline : s.pipelines)
            for (const bool set : {true, false})
                for (std::size_t i = 0; i < systems.size(); ++i) {
                    // Who is first changes, so that nobody always follows the same one.
                    system_under_test& system = *systems[(i + pair) % systems.size()];
                    tell(fmt::format("{} of {}: {} {} P={}", pair + 1, s.pairs, system.name(),
                                     set ? "set" : "get", pipeline));
                    const std::uint64_t requests = s.requests * (pipeline > 1 ? 4 : 1);
                    run_result ran;
                    try {
                        ran = ask(system, set, requests, s.clients, pipeline, s.records, value,
                                  false, pair * 1000 + pipeline);
                    } catch (const interruption&) {
                        break; // with what there is
                    }
                    std::sort(ran.latencies_us.begin(), ran.latencies_us.end());
                    cell& c = cells[{set ? "set" : "get", pipeline}][system.name()];
                    c.throughput.push_back(static_cast<double>(requests) / ran.seconds);
                    c.cpu_us.push_back(ran.cpu_seconds * 1e6 / static_cast<double>(requests));
                    c.p50.push_back(quantile(ran.latencies_us, .5));
                    c.p99.push_back(quantile(ran.latencies_us, .99));
                    c.p999.push_back(quantile(ran.latencies_us, .999));
                    c.io += ran.io_bytes;
                }
    result.partial = interrupted();
    result.json["cells"] = nlohmann::json::array();
    for (auto& [which, by_system] : cells)
        for (auto& system : systems) {
            const auto found = by_system.find(system->name());
            if (found == by_system.end()) continue;
            const cell& c = found->second;
            result.json["cells"].push_back({{"what", which.first},
                                            {"system", system->name()},
                                            {"clients", s.clients},
                                            {"pipeline", which.second},
                                            {"throughput_ops", median(c.throughput)},
                                            {"server_cpu_us_per_op", median(c.cpu_us)},
                                            {"p50_us", median(c.p50)},
                                            {"p99_us", median(c.p99)},
                                            {"p999_us", median(c.p999)},
                                            {"rss_bytes", system->rss()},
                                            {"used_bytes", system->used()},
                                            {"io_bytes", c.io}});
        }
    result.json["ratios"] = nlohmann::json::object();
    const std::string command = "obase bench server";
    const auto compare = [&](const std::string& a, const std::string& b) {
        for (auto& [which, by_system] : cells) {
            if (!by_system.contains(a) || !by_system.contains(b)) continue;
            const auto ratio = [&](const std::string& of, const std::vector<double>& x,
                                   const std::vector<double>& y, bound kind, double target) {
                std::vector<double> values;
                for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i)
                    if (y[i] > 0) values.push_back(x[i] / y[i]);
                const std::string name =
                    fmt::format("{} P={} {}: {} / {}", which.first, which.second, of, a, b);
                result.json["ratios"][name] = median(values);
                result.figures.push_back({name, "", spread_of(values), kind, target, command});
            };
            const cell &x = by_system[a], &y = by_system[b];
            const bool redis = a == "crestdb" && b == "redis";
            const bool one = which.second == 1;
            ratio("server CPU", x.cpu_us, y.cpu_us, redis ? bound::at_most : bound::none,
                  one ? 1.0 : .8);
            ratio("throughput", x.throughput, y.throughput,
                  redis || b == "crestdb-none" ? bound::at_least : bound::none,
                  redis ? (one ? 1.0 : 1.1) : .98);
            ratio("p99", x.p99, y.p99, redis ? bound::at_most : bound::none, 1.0);
        }
    };
    compare("crestdb", "redis");
    compare("crestdb", "crestdb-none");
    compare("crestdb", "memcached");
    for (auto& system : systems) {
        const double bytes = static_cast<double>(system->used()) / static_cast<double>(s.records);
        result.json["bytes_per_record"][system->name()] = bytes;
        result.figures.push_back(counted_figure(
            fmt::format("{}: bytes per record of 30 + {} bytes", system->name(), s.value_bytes),
            "bytes", bytes, command));
    }
    result.json["records"] = s.records;
    result.json["value_bytes"] = s.value_bytes;
    result.json["pairs"] = s.pairs;
    if (std::none_of(systems.begin(), systems.end(), [](auto& x) { return x->name() == "redis"; }))
        result.skipped =
            "redis-server is not installed, or not asked for: there is nothing to compare with";
    return result;
}

} // namespace obase::tools
