// SPDX-License-Identifier: MIT
#include "tools/fragmentation/redis.hpp"

#include "tools/bench/interrupt.hpp"
#include "tools/server/servers.hpp"

#include <fmt/format.h>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>

namespace obase::tools {
namespace {

using nlohmann::json;
using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) {
    return std::chrono::duration<double>(clock::now() - begin).count();
}

// One connection, one request at a time.
class redis_client {
  public:
    explicit redis_client(const std::string& path)
        : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
        if (socket_ < 0 ||
            ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            ::close(socket_);
            throw std::runtime_error(fmt::format("fragmentation: cannot connect to '{}'", path));
        }
    }
    ~redis_client() { ::close(socket_); }
    redis_client(const redis_client&) = delete;
    redis_client& operator=(const redis_client&) = delete;

    // A status or a value; nothing for nil. Throws std::runtime_error for an error, or if the server has gone.
    std::optional<std::string> ask(std::initializer_list<std::string_view> words) {
        std::string request = fmt::format("*{}\r\n", words.size());
        for (const std::string_view word : words)
            request += fmt::format("${}\r\n{}\r\n", word.size(), word);
        for (std::size_t sent = 0; sent < request.size();) {
            const ssize_t n =
                ::send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
            if (n < 0) gone();
            sent += static_cast<std::size_t>(n);
        }
        const std::string line = read_line();
        if (line.starts_with('-'))
            throw std::runtime_error(fmt::format("fragmentation: redis said '{}'", line));
        if (!line.starts_with('$')) return line.substr(1);
        const long size = std::strtol(line.c_str() + 1, nullptr, 10);
        if (size < 0) return std::nullopt;
        const std::size_t whole = static_cast<std::size_t>(size) + 2;
        while (buffer_.size() < whole) receive();
        std::string value = buffer_.substr(0, whole - 2);
        buffer_.erase(0, whole);
        return value;
    }

  private:
    [[noreturn]] static void gone() {
        throw std::runtime_error("fragmentation: redis closed the connection");
    }
    void receive() {
        char piece[4096];
        const ssize_t n = ::recv(socket_, piece, sizeof piece, 0);
        if (n < 0 && errno == EINTR) return;
        if (n <= 0) gone();
        buffer_.append(piece, static_cast<std::size_t>(n));
    }
    std::string read_line() {
        std::size_t end;
        while ((end = buffer_.find("\r\n")) == std::string::npos) receive();
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 2);
        return line;
    }

    int socket_;
    std::string buffer_;
};

// A field of /proc, in KiB there.
double mib_of(const std::string& file, std::string_view field) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
        if (line.starts_with(field))
            return std::strtod(line.c_str() + field.size(), nullptr) / 1024;
    throw std::runtime_error(fmt::format("fragmentation: {} has no {}", file, field));
}

// Of the thread that moves objects; 0 without one.
double collector_seconds(pid_t process) {
    std::error_code ignored;
    for (const auto& task :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", process), ignored)) {
        std::string name;
        std::ifstream(task.path() / "comm") >> name;
        double ran = 0;
        if (name == "obase-handles" && std::ifstream(task.path() / "schedstat") >> ran)
            return ran * 1e-9;
    }
    return 0;
}

// Asks for one value after the other.
class reading_client {
  public:
    reading_client(const std::string& socket, std::uint64_t values)
        : thread_([this, socket, values] { read(socket, values); }) {}
    ~reading_client() {
        stop_ = true;
        if (thread_.joinable()) thread_.join();
    }
    reading_client(const reading_client&) = delete;
    reading_client& operator=(const reading_client&) = delete;

    // Throws what the thread met.
    void finish() {
        stop_ = true;
        thread_.join();
        if (failed_) std::rethrow_exception(failed_);
    }
    double longest_us = 0;
    std::uint64_t found = 0, wrong = 0;

  private:
    void read(const std::string& socket, std::uint64_t values) {
        try {
            redis_client client(socket);
            for (std::uint64_t i = 0; !stop_; i = (i + 7919) % values) {
                const std::string key = fmt::format("b:{}", i);
                const auto begin = clock::now();
                const std::optional<std::string> value = client.ask({"GET", key});
                longest_us = std::max(longest_us, seconds_since(begin) * 1e6);
                if (!value.has_value()) continue;
                ++found;
                if (value->size() != second_bytes ||
                    !value->starts_with(fmt::format("value:{}", i)))
                    ++wrong;
            }
        } catch (...) {
            failed_ = std::current_exception();
        }
    }

    std::atomic<bool> stop_ = false;
    std::exception_ptr failed_;
    std::thread thread_; // last: the others are there when it begins

  public:
    static constexpr std::size_t first_bytes = 240, second_bytes = 492;
};

std::vector<std::string> words_for(const redis_servers& servers, const std::string& allocator,
                                   const std::string& socket, const std::string& directory,
                                   const std::string& figures, std::uint64_t bound) {
    std::vector<std::string> environment;
    if (allocator == "jemalloc") environment.emplace_back("LD_PRELOAD=libjemalloc.so.2");
    if (allocator == "mimalloc") environment.emplace_back("LD_PRELOAD=libmimalloc.so.2");
    if (allocator == "obase-off") environment.emplace_back("OBASE_HANDLES=off");
    if (allocator.starts_with("obase")) environment.push_back("OBASE_BENCH_FIGURES=" + figures);
    const bool defragments = allocator == "activedefrag";
    std::vector<std::string> words{allocator.starts_with("obase") ? servers.handles
                                   : defragments                  ? servers.activedefrag
                                                                  : servers.plain,
                                   "--port",
                                   "0",
                                   "--unixsocket",
                                   socket,
                                   "--dir",
                                   directory,
                                   "--save",
                                   "",
                                   "--maxmemory",
                                   std::to_string(bound),
                                   "--maxmemory-policy",
                                   "allkeys-lru",
                                   "--maxmemory-samples",
                                   "1",
                                   "--enable-debug-command",
                                   "yes"};
    if (defragments) words.insert(words.end(), {"--activedefrag", "yes"});
    words = clean_command(environment, words);
    words[0] = "/usr/bin/env";
    return words;
}

} // namespace

json run_redis(const redis_servers& servers, const std::string& allocator,
               const fragmentation_settings& settings) {
    const scratch_directory scratch;
    const std::string socket = scratch.path() + "/redis";
    const std::string figures = scratch.path() + "/figures.json";
    const std::uint64_t bound = (std::uint64_t{100} << 20) / settings.scale;
    system_under_test server(allocator,
                             words_for(servers, allocator, socket, scratch.path(), figures, bound),
                             socket, true);
    redis_client client(socket);
    const std::uint64_t second = 170'000 / settings.scale;
    client.ask({"DEBUG", "POPULATE", std::to_string(700'000 / settings.scale), "a",
                std::to_string(reading_client::first_bytes)});
    client.ask({"DEBUG", "POPULATE", std::to_string(second), "b",
                std::to_string(reading_client::second_bytes)});
    // It evicts some at each command, and between them. What it leaves to clients it counts, and does not hold against
    // the bound.
    const std::uint64_t below = bound + bound / 100;
    std::uint64_t least = UINT64_MAX;
    auto progress = clock::now();
    for (std::uint64_t used; (used = server.info("used_memory")) > below; ::usleep(5'000)) {
        if (interrupted()) throw interruption(allocator);
        if (used < least) {
            least = used;
            progress = clock::now();
        }
        if (seconds_since(progress) > 60)
            throw std::runtime_error(
                fmt::format("fragmentation: redis, {}, stays at {} bytes with a maxmemory of {}",
                            allocator, used, bound));
    }

    json run{{"allocator", allocator}};
    const auto begin = clock::now();
    const double worked = collector_seconds(server.process());
    reading_client reader(socket, second);
    std::vector<unsigned> seconds = settings.seconds;
    std::sort(seconds.begin(), seconds.end());
    double shares = 0;
    for (const unsigned at : seconds) {
        while (seconds_since(begin) < at) {
            if (interrupted()) throw interruption(allocator);
            std::this_thread::sleep_for(
                std::chrono::duration<double>(std::clamp(at - seconds_since(begin), 0.0, .1)));
        }
        const std::string proc = fmt::format("/proc/{}/", server.process());
        run["rss_mib"][std::to_string(at)] = mib_of(proc + "status", "VmRSS:");
        run["pss_mib"][std::to_string(at)] = mib_of(proc + "smaps_rollup", "Pss:");
        shares += static_cast<double>(server.info("active_defrag_running")) / 100;
    }
    const double took = std::max(seconds_since(begin), 1e-3);
    const double collected = collector_seconds(server.process()) - worked;
    reader.finish();
    if (reader.found == 0)
        throw std::runtime_error("fragmentation: redis has none of the values that came last");
    run["longest_stall_us"] = reader.longest_us;
    run["read"] = reader.found;
    run["wrong"] = reader.wrong;
    run["live_mib"] = static_cast<double>(server.info("used_memory")) / 1048576;
    run["moved"] = server.info("active_defrag_hits");
    run["vetoed"] = server.info("active_defrag_misses");
    // Activedefrag's work is in the server's only thread; it says how much of it it gives itself.
    run["cpu_share"] =
        collected / took + shares / static_cast<double>(std::max<std::size_t>(seconds.size(), 1));
    try {
        client.ask({"SHUTDOWN", "NOSAVE"});
    } catch (const std::runtime_error&) { // it says nothing more
    }
    if (!server.wait_for_end(10))
        throw std::runtime_error(fmt::format("fragmentation: redis, {}, does not end", allocator));
    if (const json counted = take_figures(figures); counted.is_object()) {
        run["moved"] = counted.at("moved");
        run["vetoed"] = counted.at("vetoed");
    } else if (allocator.starts_with("obase")) {
        throw std::runtime_error("fragmentation: redis with handles left no figures");
    }
    return run;
}

} // namespace obase::tools
