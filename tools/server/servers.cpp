// SPDX-License-Identifier: MIT
#include "tools/server/servers.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"
#include "tools/server/resp_client.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace obase::tools {

namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& what) {
    throw std::runtime_error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

// A server that was killed closes its connections a moment before it can be waited for.
[[noreturn]] void closed(const system_under_test& system) {
    for (int tries = 0; tries < 100 && system.state() == "still running"; ++tries) ::usleep(1'000);
    throw std::runtime_error(
        fmt::format("{} closed a connection ({})", system.name(), system.state()));
}

std::string how_it_ended(int code, int status) {
    return code == CLD_EXITED ? fmt::format("ended with status {}", status)
                              : fmt::format("killed by signal {}", status);
}

} // namespace

scratch_directory::scratch_directory() {
    char name[] = "/tmp/obase-server-XXXXXX";
    if (::mkdtemp(name) == nullptr) fail("cannot make a directory in /tmp");
    path_ = name;
}
scratch_directory::~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

std::string in_path(const std::string& program) {
    const char* path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
    for (std::string folder; std::getline(folders, folder, ':');)
        if (::access((folder + "/" + program).c_str(), X_OK) == 0) return folder + "/" + program;
    return "";
}

std::vector<std::string> with_options(const std::vector<std::string>& words,
                                      const std::string& options) {
    std::istringstream in(options);
    std::vector<std::string> more;
    for (std::string word; in >> word;) more.push_back(word);
    const auto is_in_more = [&](const std::string& name) {
        return std::any_of(more.begin(), more.end(), [&](const std::string& word) {
            return word.starts_with("--") && word.substr(0, word.find('=')) == name;
        });
    };
    std::vector<std::string> all;
    bool left_out = false; // the option before, and so its value
    for (const std::string& word : words) {
        const bool is_option = word.starts_with("--");
        left_out = is_option ? is_in_more(word) : left_out;
        if (!left_out) all.push_back(word);
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

std::string crestdb_program() {
    return std::filesystem::read_symlink("/proc/self/exe").replace_filename("crestdb").string();
}

std::string key_of(std::uint64_t record) { return fmt::format("key:{:026}", record); }

std::string value_of(std::uint64_t record, std::size_t bytes) {
    std::string value = fmt::format("{:020}", record);
    value.resize(std::max(bytes, value.size()), 'v');
    return value;
}

system_under_test::system_under_test(std::string name, std::vector<std::string> words,
                                     std::string socket, bool resp, const control_group* group)
    : name_(std::move(name)), socket_(std::move(socket)), resp_(resp) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::vector<std::string> settings = clean_environment();
    std::vector<char*> environment;
    for (std::string& setting : settings) environment.push_back(setting.data());
    environment.push_back(nullptr);
    const pid_t parent = ::getpid();
    {
        const interrupts_held held;
        process_ = ::fork();
        if (process_ == 0) {
            let_interrupts_end_this_process();
            held.let_go();
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(1);
            if (group != nullptr && !group->join()) ::_exit(126);
            const int nowhere = ::open("/dev/null", O_RDWR);
            ::dup2(nowhere, STDIN_FILENO);
            ::dup2(nowhere, STDOUT_FILENO);
            ::dup2(nowhere, STDERR_FILENO);
            ::execve(arguments[0], arguments.data(), environment.data());
            ::_exit(127);
        }
    }
    if (process_ < 0) fail("fork");
    for (int tries = 0; tries < 1000; ++tries) {
        if (const int s = connect_unix(socket_); s >= 0) {
            ::close(s);
            empty_rss_ = rss();
            return;
        }
        if (state() != "still running") break;
        ::usleep(10'000);
    }
    const std::string how = state();
    stop();
    throw std::runtime_error(fmt::format("{} did not start ({})", fmt::join(words, " "), how));
}
std::string system_under_test::request(bool set, std::string_view key,
                                       std::string_view value) const {
    if (resp_)
        return set ? fmt::format("*3\r\n$3\r\nSET\r\n${}\r\n{}\r\n${}\r\n{}\r\n", key.size(), key,
                                 value.size(), value)
                   : fmt::format("*2\r\n$3\r\nGET\r\n${}\r\n{}\r\n", key.size(), key);
    return set ? fmt::format("set {} 0 0 {}\r\n{}\r\n", key, value.size(), value)
               : fmt::format("get {}\r\n", key);
}
std::string system_under_test::expected(bool set, std::string_view key,
                                        std::string_view value) const {
    if (resp_) return set ? "+OK\r\n" : fmt::format("${}\r\n{}\r\n", value.size(), value);
    return set ? "STORED\r\n"
               : fmt::format("VALUE {} 0 {}\r\n{}\r\nEND\r\n", key, value.size(), value);
}

double cpu_seconds(pid_t process, std::string_view thread) {
    double nanoseconds = 0;
    std::error_code ignored;
    for (const auto& task :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), ignored)) {
        std::string name;
        std::getline(std::ifstream(task.path() / "comm") >> std::ws, name);
        if (!thread.empty() && name != thread) continue;
        double ran = 0;
        if (std::ifstream(task.path() / "schedstat") >> ran) nanoseconds += ran;
    }
    return nanoseconds / 1e9;
}

std::uint64_t system_under_test::rss() const {
    std::ifstream file(fmt::format("/proc/{}/statm", process_));
    std::uint64_t size = 0, resident = 0;
    file >> size >> resident;
    return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}
std::uint64_t system_under_test::used() const {
    const std::uint64_t now = rss();
    return now > empty_rss_ ? now - empty_rss_ : 0;
}
std::uint64_t system_under_test::io_bytes() const {
    std::ifstream file(fmt::format("/proc/{}/io", process_));
    std::uint64_t sum = 0, value = 0;
    for (std::string field; file >> field >> value;)
        if (field == "read_bytes:" || field == "write_bytes:") sum += value;
    return sum;
}

std::string system_under_test::state() const {
    siginfo_t info{};
    if (process_ <= 0) return "ended";
    // Left to be waited for.
    if (::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == process_)
        return how_it_ended(info.si_code, info.si_status);
    return "still running";
}

bool system_under_test::wait_for_end(double seconds) noexcept {
    for (const auto until = clock::now() + std::chrono::duration<double>(seconds);
         process_ > 0 && clock::now() < until; ::usleep(5'000))
        if (::waitpid(process_, nullptr, WNOHANG) == process_) process_ = -1;
    return process_ <= 0;
}

void system_under_test::stop() noexcept {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
}

system_under_test::stopped::stopped(const system_under_test& its) noexcept
    : process_(its.process_) {
    if (process_ <= 0 || ::kill(process_, SIGSTOP) != 0) return;
    // The signal is sent; until it is delivered threads go on.
    siginfo_t about{};
    ::waitid(P_PID, static_cast<id_t>(process_), &about, WSTOPPED | WNOWAIT);
}
system_under_test::stopped::~stopped() {
    if (process_ > 0) ::kill(process_, SIGCONT);
}

std::uint64_t system_under_test::major_faults(bool first_thread) const {
    std::ifstream file(first_thread ? fmt::format("/proc/{0}/task/{0}/stat", process_)
                                    : fmt::format("/proc/{}/stat", process_));
    std::string line;
    std::getline(file, line);
    std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
    std::string field;
    for (int i = 3; i <= 12 && fields >> field; ++i) {
    }
    return std::strtoull(field.c_str(), nullptr, 10);
}

std::uint64_t system_under_test::info(std::string_view field) const try {
    const std::string text = resp_client(socket_).ask({"INFO", "all"}).value_or("");
    const std::size_t at = text.find(fmt::format("\n{}:", field));
    return at == std::string::npos
               ? 0
               : std::strtoull(text.c_str() + at + field.size() + 2, nullptr, 10);
} catch (const std::runtime_error&) {
    return 0; // it has gone, or has no INFO
}

run_result ask(system_under_test& system, const load_request& load) {
    const std::uint64_t requests = load.requests;
    const unsigned pipeline = load.pipeline;
    struct one {
        int socket = -1;
        std::string request, expected;
        std::size_t sent = 0, received = 0;
        bool apart = false, writing = false;
        clock::time_point begin;
        ~one() {
            if (socket >= 0) ::close(socket);
        }
    };
    std::vector<one> all(load.clients);
    const int poll = ::epoll_create1(EPOLL_CLOEXEC);
    if (poll < 0) fail("epoll");
    const std::unique_ptr<const int, void (*)(const int*)> closes(
        &poll, [](const int* p) { ::close(*p); });
    workload::random_stream random(load.seed);
    std::uint64_t begun = 0, done = 0;
    run_result result;
    result.latencies_us.reserve(requests / pipeline + load.clients);
    const auto next = [&](one& c) {
        c.request.clear();
        c.expected.clear();
        c.sent = c.received = 0;
        c.apart = false;
        for (unsigned i = 0; i < pipeline && begun < requests; ++i, ++begun) {
            const std::uint64_t record = load.next(random, c.apart);
            const std::string key = key_of(record), value = value_of(record, load.value_bytes);
            c.request += system.request(load.set, key, value);
            c.expected += system.expected(load.set, key, value);
        }
        c.begin = clock::now();
        return !c.request.empty();
    };
    // What the socket does not take now is sent when it can be written.
    const auto wait_to_write = [&](one& c, bool on) {
        if (c.writing == on) return;
        c.writing = on;
        epoll_event event{};
        event.events = on ? EPOLLIN | EPOLLOUT : EPOLLIN;
        event.data.ptr = &c;
        if (::epoll_ctl(poll, EPOLL_CTL_MOD, c.socket, &event) != 0) fail("epoll");
    };
    const auto push = [&](one& c) {
        while (c.sent < c.request.size()) {
            const ssize_t n = ::send(c.socket, c.request.data() + c.sent, c.request.size() - c.sent,
                                     MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return wait_to_write(c, true);
            if (n < 0) closed(system);
            c.sent += static_cast<std::size_t>(n);
        }
        wait_to_write(c, false);
    };
    for (one& c : all) {
        c.socket = connect_unix(system.socket());
        if (c.socket < 0) fail("cannot connect to " + system.name());
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &c;
        if (::epoll_ctl(poll, EPOLL_CTL_ADD, c.socket, &event) != 0) fail("epoll");
    }
    const double cpu = cpu_seconds(system.process());
    const std::uint64_t io = system.io_bytes();
    const auto begin = clock::now();
    for (one& c : all)
        if (next(c)) push(c);
    std::vector<char> buffer(1 << 18);
    while (done < requests) {
        if (interrupted()) throw interruption("interrupted");
        epoll_event ready[64];
        const int n = ::epoll_wait(poll, ready, 64, 60'000);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) throw std::runtime_error(system.name() + " did not answer for a minute");
        for (int i = 0; i < n; ++i) {
            one& c = *static_cast<one*>(ready[i].data.ptr);
            if ((ready[i].events & EPOLLOUT) != 0) push(c);
            if ((ready[i].events & ~static_cast<unsigned>(EPOLLOUT)) == 0) continue;
            const ssize_t got = ::recv(c.socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0) closed(system);
            const auto size = static_cast<std::size_t>(got);
            if (c.received + size > c.expected.size() ||
                std::memcmp(buffer.data(), c.expected.data() + c.received, size) != 0)
                throw std::runtime_error(
                    fmt::format("{} sent another reply than expected", system.name()));
            c.received += size;
            if (c.received < c.expected.size()) continue;
            (c.apart ? result.apart_us : result.latencies_us)
                .push_back(
                    std::chrono::duration<double, std::micro>(clock::now() - c.begin).count());
            done += std::min<std::uint64_t>(pipeline, requests - done);
            if (next(c)) push(c);
        }
    }
    result.seconds = std::chrono::duration<double>(clock::now() - begin).count();
    result.cpu_seconds = cpu_seconds(system.process()) - cpu;
    result.io_bytes = system.io_bytes() - io;
    return result;
}

void fill(system_under_test& system, std::uint64_t records, std::size_t value_bytes) {
    std::uint64_t next = 0;
    load_request load;
    load.set = true;
    load.requests = records;
    load.clients = 1;
    load.pipeline = 100;
    load.value_bytes = value_bytes;
    load.next = [&](workload::random_stream&, bool&) { return next++; };
    ask(system, load);
}

double quantile(std::vector<double>& sorted, double q) {
    if (sorted.empty()) return 0;
    return sorted[std::min(sorted.size() - 1,
                           static_cast<std::size_t>(q * static_cast<double>(sorted.size())))];
}

} // namespace obase::tools
