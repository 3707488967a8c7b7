// SPDX-License-Identifier: MIT
//
// A server process for a benchmark, and a client that compares every reply: one thread, many connections
// over a Unix socket. A server may have a control group of its own, which it is in before it has any memory.
#pragma once

#include "tools/workload/random.hpp"
#include "tools/ycsb/control_group.hpp"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace obase::tools {

// A directory with a short name, for the path of a socket has at most 107 characters.
class scratch_directory {
  public:
    scratch_directory();
    ~scratch_directory();
    scratch_directory(const scratch_directory&) = delete;
    scratch_directory& operator=(const scratch_directory&) = delete;
    const std::string& path() const noexcept { return path_; }

  private:
    std::string path_;
};

// A command line with more options, which blanks part. Those of the same name that it had are not in it.
std::vector<std::string> with_options(const std::vector<std::string>& words,
                                      const std::string& options);
// "" if there is none.
std::string in_path(const std::string& program);
// crestdb beside this program.
std::string crestdb_program();
// 30 bytes.
std::string key_of(std::uint64_t record);
// Which no other record has; at least 20 bytes.
std::string value_of(std::uint64_t record, std::size_t bytes);

// Of the threads of a process that are there, or of those with that name, by the scheduler's count.
double cpu_seconds(pid_t process, std::string_view thread = "");

// It has the environment of this process without the settings of obase (clean_environment()).
class system_under_test {
  public:
    // Throws std::runtime_error if it does not start. `group`: null or the one it is to be in.
    system_under_test(std::string name, std::vector<std::string> words, std::string socket,
                      bool resp, const control_group* group = nullptr);
    ~system_under_test() { stop(); }
    system_under_test(const system_under_test&) = delete;
    system_under_test& operator=(const system_under_test&) = delete;

    const std::string& name() const noexcept { return name_; }
    const std::string& socket() const noexcept { return socket_; }
    pid_t process() const noexcept { return process_; }
    // Waits until it has ended by itself, having been asked to. False if it has not by then.
    bool wait_for_end(double seconds) noexcept;
    // "killed by signal 9", "ended with status 2", "still running", or "ended" once that is known.
    std::string state() const;
    std::string request(bool set, std::string_view key, std::string_view value) const;
    std::string expected(bool set, std::string_view key, std::string_view value) const;

    std::uint64_t rss() const;
    // Since the empty server.
    std::uint64_t used() const;
    std::uint64_t io_bytes() const;
    // Pages that it waited for: the process, or its first thread, which serves clients.
    std::uint64_t major_faults(bool first_thread = false) const;
    // While one exists, none of its threads runs.
    class stopped {
      public:
        explicit stopped(const system_under_test& its) noexcept;
        ~stopped();
        stopped(const stopped&) = delete;
        stopped& operator=(const stopped&) = delete;

      private:
        pid_t process_;
    };
    // A number in INFO; 0 without it.
    std::uint64_t info(std::string_view field) const;

  private:
    void stop() noexcept;

    std::string name_, socket_;
    bool resp_;
    pid_t process_ = -1;
    std::uint64_t empty_rss_ = 0;
};

struct load_request {
    bool set = false;
    std::uint64_t requests = 0;
    unsigned clients = 50, pipeline = 1;
    std::size_t value_bytes = 100;
    std::uint64_t seed = 1;
    // Which record is next; `apart` may be set, for a turn whose latency is kept apart.
    std::function<std::uint64_t(workload::random_stream&, bool& apart)> next;
};
struct run_result {
    double seconds = 0, cpu_seconds = 0;
    std::vector<double> latencies_us; // of a client's turn: from its requests to the last reply
    std::vector<double> apart_us;
    std::uint64_t io_bytes = 0;
};
// Throws std::runtime_error when a reply is another one than expected.
run_result ask(system_under_test& system, const load_request& load);
// Writes each of the records once.
void fill(system_under_test& system, std::uint64_t records, std::size_t value_bytes);

double quantile(std::vector<double>& sorted, double q);

} // namespace obase::tools
