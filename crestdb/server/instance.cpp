// SPDX-License-Identifier: MIT
#include "crestdb/server/instance.hpp"

#include "crestdb/server/snapshot.hpp"

#include <obase/runtime.hpp>
#include <obase/version.hpp>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <random>
#include <utility>

namespace crestdb::server {

namespace {

std::int64_t unix_seconds() {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::string random_id() {
    std::random_device device;
    std::string id;
    for (int i = 0; i < 5; ++i) id += fmt::format("{:08x}", device());
    return id;
}

std::int64_t resident_bytes() {
    std::ifstream status("/proc/self/statm");
    std::int64_t size = 0, resident = 0;
    status >> size >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

std::string human(std::int64_t bytes) {
    const auto b = static_cast<double>(bytes);
    if (b < 1024) return fmt::format("{}B", bytes);
    if (b < 1024.0 * 1024) return fmt::format("{:.2f}K", b / 1024);
    if (b < 1024.0 * 1024 * 1024) return fmt::format("{:.2f}M", b / (1024.0 * 1024));
    return fmt::format("{:.2f}G", b / (1024.0 * 1024 * 1024));
}

double seconds(const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

} // namespace

instance::instance(settings& its_options)
    : options(its_options), last_save_seconds(unix_seconds()), started_seconds(unix_seconds()),
      run_id(random_id()) {}

instance::~instance() { abandon_background_save(); }

void instance::enter(session& client) {
    const std::lock_guard hold(clients_lock_);
    clients_.emplace(client.id, &client);
}
void instance::leave(session& client) {
    const std::lock_guard hold(clients_lock_);
    clients_.erase(client.id);
}

void instance::log(std::string_view message) const {
    const auto now = std::chrono::system_clock::now();
    fmt::print(stderr, "{}:{:%Y-%m-%d %H:%M:%S} {}\n", ::getpid(),
               fmt::gmtime(std::chrono::system_clock::to_time_t(now)), message);
    std::fflush(stderr);
}

void instance::tick(bool expires) {
    compare_clocks();
    update_now();
    const obase::statistics now = managing_runtime().statistics();
    keys.window = now.windows;
    windows.note(now.windows, now_ms());
    const std::int64_t used = keys.used_bytes();
    if (used > peak_used) peak_used = used;
    if (expires && options.active_expire) keys.expire_some(20'000, now_ms());
    reap_background_save();
}

// -- snapshots ------------------------------------------------------------------------------------

std::string instance::snapshot_path() const { return options.directory + "/" + options.snapshot; }

namespace {

constexpr int look_for_stop_ms = 50;

struct pipe_ends {
    pipe_ends() {
        if (::pipe2(end, O_CLOEXEC) != 0) end[0] = end[1] = -1;
    }
    ~pipe_ends() {
        close_one(0);
        close_one(1);
    }
    pipe_ends(const pipe_ends&) = delete;
    pipe_ends& operator=(const pipe_ends&) = delete;
    void close_one(int which) {
        if (end[which] >= 0) ::close(std::exchange(end[which], -1));
    }
    int end[2];
};

std::string how_it_ended(int status) {
    return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                               : fmt::format("status {}", WEXITSTATUS(status));
}

} // namespace

pid_t instance::fork_writer(const std::string& path, int tell, std::int64_t& dirty) {
    // At the fork no thread is in an operation on the keys: the child has them whole.
    keyspace::part_set all;
    const part_locks locks(keys, all.set());
    dirty = static_cast<std::int64_t>(keys.count.dirty.load());
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child != 0) return child;
    // A server that is killed takes its child along: the next one writes the same file.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGUSR2})
        std::signal(number, SIG_DFL);
    managed_by = managing::still;
    // The clients' connections end when the server closes them, not when the child ends too.
    if (tell > 3) ::close_range(3, static_cast<unsigned>(tell) - 1, 0);
    ::close_range(tell < 3 ? 3u : static_cast<unsigned>(tell) + 1, ~0u, 0);
    const snapshot::written result = snapshot::write(keys, path);
    const std::string message = result.error.empty()
                                    ? fmt::format("{} keys, {} bytes", result.keys, result.bytes)
                                    : result.error;
    if (tell >= 0) {
        if (::write(tell, message.data(), message.size()) < 0) ::_exit(2);
    } else if (!result.error.empty()) {
        const std::string line = "snapshot: " + message + "\n";
        if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ::_exit(2);
    }
    ::_exit(result.error.empty() ? 0 : 1);
}

std::string instance::save() {
    constexpr const char* is_saving = "Background save already in progress";
    if (saving()) return is_saving; // without waiting for its end
    const std::lock_guard one_at_a_time(save_lock_);
    if (saving()) return is_saving;
    saves_ = true;
    const std::unique_ptr<std::atomic<bool>, void (*)(std::atomic<bool>*)> over(
        &saves_, [](std::atomic<bool>* saves) { *saves = false; });
    pipe_ends pipe;
    std::int64_t dirty = 0;
    const pid_t child = pipe.end[1] < 0 ? -1 : fork_writer(snapshot_path(), pipe.end[1], dirty);
    if (child < 0) return stopping ? "given up, for the server stops" : save_here();
    child_since_ = unix_seconds();
    pipe.close_one(1);
    std::string told;
    char some[512];
    bool given_up = false;
    for (;;) {
        // A look at `stopping` now and then: the signal that sets it may come to any thread.
        pollfd readable{pipe.end[0], POLLIN, 0};
        const int ready = ::poll(&readable, 1, look_for_stop_ms);
        if (stopping && !given_up) {
            given_up = true;
            ::kill(child, SIGKILL); // nobody else waits for it: the number is still its own
        }
        if (ready <= 0) continue;
        const ssize_t n = ::read(pipe.end[0], some, sizeof some);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        told.append(some, static_cast<std::size_t>(n));
    }
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(child, &status, 0)) < 0 && errno == EINTR) {
    }
    last_save_ok = ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!last_save_ok) {
        if (given_up)
            told = "given up, for the server stops";
        else if (told.empty())
            told = fmt::format("the process that wrote it ended with {}", how_it_ended(status));
        log("snapshot: " + told);
        snapshot::remove_unfinished(snapshot_path());
        return told;
    }
    keys.count.dirty -= static_cast<std::uint64_t>(dirty);
    last_save_seconds = unix_seconds();
    log(fmt::format("snapshot: {} in {}", told, snapshot_path()));
    return "";
}

std::string instance::save_here() {
    snapshot::written result;
    std::uint64_t dirty = 0;
    {
        keyspace::part_set all;
        const part_locks locks(keys, all.set());
        dirty = keys.count.dirty;
        result = snapshot::write(keys, snapshot_path());
    }
    last_save_ok = result.error.empty();
    if (!result.error.empty()) {
        log("snapshot: " + result.error);
        return result.error;
    }
    keys.count.dirty -= dirty;
    last_save_seconds = unix_seconds();
    log(fmt::format("snapshot: {} keys, {} bytes in {}", result.keys, result.bytes,
                    snapshot_path()));
    return "";
}

std::string instance::begin_background_save() {
    // SAVE holds it until its child has ended.
    const std::unique_lock one_at_a_time(save_lock_, std::try_to_lock);
    if (!one_at_a_time || saving()) return "Background save already in progress";
    const pid_t child = fork_writer(snapshot_path(), -1, child_dirty_);
    if (child < 0) {
        last_save_ok = false;
        return fmt::format("Can't save in background: fork: {}",
                           std::generic_category().message(errno));
    }
    child_ = child;
    child_since_ = unix_seconds();
    return "";
}

void instance::reap_background_save() {
    if (child_ == 0) return;
    const std::lock_guard one_at_a_time(save_lock_);
    const pid_t child = child_;
    if (child == 0) return;
    int status = 0;
    const pid_t ended = ::waitpid(child, &status, WNOHANG);
    if (ended == 0) return;
    child_ = 0;
    const bool done = ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    last_save_ok = done;
    if (done) {
        keys.count.dirty -= static_cast<std::uint64_t>(child_dirty_);
        last_save_seconds = unix_seconds();
        log("snapshot: written in the background to " + snapshot_path());
    } else {
        log(fmt::format("snapshot: the background save failed ({})", how_it_ended(status)));
        snapshot::remove_unfinished(snapshot_path());
    }
}

void instance::abandon_background_save() {
    const std::lock_guard one_at_a_time(save_lock_);
    const pid_t child = child_;
    if (child == 0) return;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    child_ = 0;
    snapshot::remove_unfinished(snapshot_path());
}

// -- what it tells --------------------------------------------------------------------------------

std::string instance::info(const std::vector<std::string>& sections) {
    std::string text;
    const auto asked = [&](std::string_view name) {
        return std::find(sections.begin(), sections.end(), name) != sections.end();
    };
    const bool everything = asked("all") || asked("everything");
    const bool usual = sections.empty() || asked("default");
    const auto begin = [&](std::string_view name, bool by_default = true) {
        std::string folded(name);
        folded[0] = static_cast<char>(folded[0] | 32);
        if (folded == "cPU" || name == "CPU") folded = "cpu";
        if (!everything && !asked(folded) && !(by_default && usual)) return false;
        if (!text.empty()) text += "\r\n";
        text += fmt::format("# {}\r\n", name);
        return true;
    };
    const auto row = [&](std::string_view name, const auto& value) {
        text += fmt::format("{}:{}\r\n", name, value);
    };
    const auto up =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - since)
            .count();
    if (begin("Server")) {
        row("redis_version", "7.0.15");
        row("crestdb_version", obase::version());
        row("redis_mode", "standalone");
        row("os", "Linux");
        row("arch_bits", 64);
        row("process_id", ::getpid());
        row("run_id", run_id);
        row("tcp_port", options.port);
        row("uptime_in_seconds", up);
        row("uptime_in_days", up / 86400);
        row("io_threads", options.threads);
    }
    if (begin("Clients")) {
        std::size_t connected = 0, in = 0, out = 0;
        {
            const std::lock_guard hold(clients_lock_);
            connected = clients_.size();
            for (const auto& [id, s] : clients_) {
                in = std::max(in, s->input_bytes.load());
                out = std::max(out, s->output_bytes.load());
            }
        }
        row("connected_clients", connected);
        row("maxclients", options.max_clients.load());
        row("client_recent_max_input_buffer", in);
        row("client_recent_max_output_buffer", out);
        row("blocked_clients", 0);
    }
    if (begin("Memory")) {
        const std::int64_t used = keys.used_bytes(), resident = resident_bytes();
        row("used_memory", used);
        row("used_memory_human", human(used));
        row("used_memory_rss", resident);
        row("used_memory_rss_human", human(resident));
        row("used_memory_peak", std::max(used, peak_used.load()));
        row("maxmemory", options.maxmemory.load());
        row("maxmemory_human", human(options.maxmemory));
        row("maxmemory_policy", name_of(options.policy_of_eviction));
        row("mem_allocator", "obase");
    }
    if (begin("Persistence")) {
        row("loading", 0);
        row("rdb_changes_since_last_save", keys.count.dirty.load());
        row("rdb_bgsave_in_progress", saving() ? 1 : 0);
        row("rdb_last_save_time", last_save_seconds.load());
        row("rdb_last_bgsave_status", last_save_ok ? "ok" : "err");
        row("rdb_current_bgsave_time_sec", saving() ? unix_seconds() - child_since_.load() : -1);
        row("aof_enabled", 0);
    }
    if (begin("Stats")) {
        row("total_connections_received", connections.load());
        row("total_commands_processed", commands.load());
        row("total_net_input_bytes", bytes_in.load());
        row("total_net_output_bytes", bytes_out.load());
        row("rejected_connections", rejected_connections.load());
        row("client_query_buffer_limit_disconnections", closed_for_input.load());
        row("client_output_buffer_limit_disconnections", closed_for_output.load());
        row("expired_keys", keys.count.expired.load());
        row("evicted_keys", keys.count.evicted.load());
        row("keyspace_hits", keys.count.hits.load());
        row("keyspace_misses", keys.count.misses.load());
        row("cold_reads", cold_reads.load());
        row("cold_read_errors", cold_read_errors.load());
    }
    if (begin("Replication")) {
        row("role", "master");
        row("connected_slaves", 0);
        row("master_repl_offset", 0);
    }
    if (begin("CPU")) {
        rusage self{}, children{};
        ::getrusage(RUSAGE_SELF, &self);
        ::getrusage(RUSAGE_CHILDREN, &children);
        row("used_cpu_sys", fmt::format("{:.6f}", seconds(self.ru_stime)));
        row("used_cpu_user", fmt::format("{:.6f}", seconds(self.ru_utime)));
        row("used_cpu_sys_children", fmt::format("{:.6f}", seconds(children.ru_stime)));
        row("used_cpu_user_children", fmt::format("{:.6f}", seconds(children.ru_utime)));
    }
    if (begin("Commandstats", false)) {
        for (const command& what : all_commands()) {
            const command_counters& counters = counters_of(what);
            if (counters.calls == 0 && counters.rejected == 0) continue;
            const std::uint64_t calls = counters.calls, us = counters.microseconds;
            row(fmt::format("cmdstat_{}", what.name),
                fmt::format(
                    "calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                    calls, us,
                    calls == 0 ? 0.0 : static_cast<double>(us) / static_cast<double>(calls),
                    counters.rejected.load(), counters.failed.load()));
        }
    }
    if (begin("Cluster")) row("cluster_enabled", 0);
    if (begin("Keyspace")) {
        for (unsigned d = 0; d < keyspace::databases; ++d)
            if (keys.size(d) > 0)
                row(fmt::format("db{}", d),
                    fmt::format("keys={},expires={},avg_ttl=0", keys.size(d), keys.expiring(d)));
    }
    if (begin("Obase")) {
        const obase::statistics now = managing_runtime().statistics();
        row("obase_mode", now.mode);
        row("obase_protocol", managed_by == managing::none ? "none" : now.protocol);
        row("obase_cold", options.cold);
        row("obase_windows", now.windows);
        row("obase_window_seconds", now.window_seconds);
        row("obase_history_windows", managing_runtime().history().size());
        row("obase_moved_objects", now.moved_objects);
        row("obase_moved_bytes", now.moved_bytes);
        row("obase_vetoed_moves", now.vetoed_moves);
        row("obase_pinned_skips", now.pinned_skips);
        row("obase_paged_out_bytes", now.paged_out_bytes);
        row("obase_budget_bytes", now.budget_bytes);
        row("obase_budget_used_bytes", now.budget_used_bytes);
        row("obase_allocation_waits", now.allocation_waits);
        row("obase_collector_cpu_seconds", now.collector_cpu_seconds);
        for (unsigned h = 0; h < now.heap_count; ++h) {
            row(fmt::format("obase_{}_live_bytes", now.heap_name(h)), now.heaps[h].live_bytes);
            row(fmt::format("obase_{}_live_objects", now.heap_name(h)), now.heaps[h].live_objects);
        }
    }
    return text;
}

std::string instance::metrics() {
    std::string text;
    const auto row = [&](std::string_view name, std::string_view kind, std::string_view help_text,
                         const auto& value) {
        text += fmt::format("# HELP crestdb_{0} {1}\n# TYPE crestdb_{0} {2}\ncrestdb_{0} {3}\n",
                            name, help_text, kind, value);
    };
    std::size_t connected = 0;
    {
        const std::lock_guard hold(clients_lock_);
        connected = clients_.size();
    }
    row("connected_clients", "gauge", "clients connected", connected);
    row("connections_total", "counter", "connections accepted", connections.load());
    row("rejected_connections_total", "counter", "connections refused because of maxclients",
        rejected_connections.load());
    row("commands_total", "counter", "commands received", commands.load());
    row("input_bytes_total", "counter", "bytes received", bytes_in.load());
    row("output_bytes_total", "counter", "bytes sent", bytes_out.load());
    row("keyspace_hits_total", "counter", "reads that found their key", keys.count.hits.load());
    row("keyspace_misses_total", "counter", "reads that did not", keys.count.misses.load());
    row("expired_keys_total", "counter", "keys whose time was over", keys.count.expired.load());
    row("evicted_keys_total", "counter", "keys removed for maxmemory", keys.count.evicted.load());
    row("cold_reads_total", "counter", "requests that waited for cold data", cold_reads.load());
    row("cold_read_errors_total", "counter", "cold data that could not be read",
        cold_read_errors.load());
    row("used_bytes", "gauge", "bytes of all data, in DRAM or not", keys.used_bytes());
    row("maxmemory_bytes", "gauge", "limit of it; 0: none", options.maxmemory.load());
    row("resident_bytes", "gauge", "resident memory of the process", resident_bytes());
    row("background_save_running", "gauge", "1 while a background save runs", saving() ? 1 : 0);
    row("last_save_timestamp_seconds", "gauge", "when the last snapshot was written",
        last_save_seconds.load());
    std::size_t all = 0;
    for (unsigned d = 0; d < keyspace::databases; ++d) all += keys.size(d);
    row("keys", "gauge", "keys in all databases", all);
    return text + managing_runtime().statistics().to_prometheus();
}

} // namespace crestdb::server
