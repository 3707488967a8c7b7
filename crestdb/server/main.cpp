// SPDX-License-Identifier: MIT
//
// crestdb: a cache server for Redis clients whose cold data lies on a disk. docs/server.md.
//
// Exit status: 0 stopped as asked; 1 it could not start or a snapshot is damaged; 2 the command line was
// not understood.
#include "crestdb/server/instance.hpp"
#include "crestdb/server/network.hpp"
#include "crestdb/server/snapshot.hpp"

#include <obase/options.hpp>
#include <obase/runtime.hpp>
#include <obase/version.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace crestdb::server {

namespace {

bool there_is_swap() {
    std::ifstream swaps("/proc/swaps");
    std::string line;
    std::getline(swaps, line); // the heading
    return static_cast<bool>(std::getline(swaps, line));
}

bool is_memory_itself(const std::string& directory) {
    constexpr decltype(std::declval<struct statfs>().f_type) tmpfs = 0x01021994, ramfs = 0x858458f6;
    struct statfs about{};
    return ::statfs(directory.c_str(), &about) == 0 &&
           (about.f_type == tmpfs || about.f_type == ramfs);
}

// The line of the start that says what becomes of cold data.
std::string where_cold_goes(const settings& options) {
    if (managed_by == managing::none)
        return "nothing moves (--protocol none): all data stay in memory";
    if (options.mode == "off" || options.mode == "observe")
        return fmt::format("nothing moves (--mode {}): all data stay in memory", options.mode);
    const bool in_file = options.cold.starts_with("file:");
    const std::string place =
        in_file ? fmt::format("COLD is an unnamed file in {}", options.cold.substr(5))
                : "COLD is anonymous memory";
    if (options.hints != "none" && options.mode == "move")
        return fmt::format("{}; --hints {} needs --mode hint: nothing is told to the kernel", place,
                           options.hints);
    if (options.hints == "pageout" && in_file && is_memory_itself(options.cold.substr(5)))
        return place + ", which is memory itself (tmpfs): nothing leaves memory. A directory on a "
                       "disk frees it";
    if (options.hints == "pageout" && in_file)
        return place + "; what is cold leaves memory (--hints pageout)";
    if (options.hints == "pageout" && there_is_swap())
        return place +
               "; what is cold leaves memory for the swap of this machine (--hints pageout)";
    if (options.hints == "pageout")
        return place +
               ", and this machine has no swap: nothing leaves memory. --cold file:DIR frees it";
    if (in_file)
        return place +
               "; the kernel takes its memory when it needs some. --hints pageout frees it now";
    return place + (there_is_swap() ? "; the kernel swaps it when it needs memory"
                                    : ", and this machine has no swap: nothing leaves memory. "
                                      "--cold file:DIR --hints pageout frees it");
}

// "" or why COLD cannot lie where --cold says. obase would go on without it; who says where cold data goes
// hears at once that it does not go there.
std::string cold_directory_fails(const settings& options) {
    if (!options.cold.starts_with("file:")) return "";
    const int file =
        ::open(options.cold.substr(5).c_str(), O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0)
        return fmt::format("--cold {}: no unnamed file can be made there: {}", options.cold,
                           std::generic_category().message(errno));
    ::close(file);
    return "";
}

// "" or why not.
std::string configure_obase(const settings& options) {
    managed_by = options.protocol == "none"  ? managing::none
                 : options.protocol == "atc" ? managing::atc
                                             : managing::arming;
    obase::options library = obase::options::from_environment();
    const bool nothing = managed_by == managing::none;
    std::string mode = options.mode;
    if (mode.empty()) mode = nothing ? "off" : options.hints != "none" ? "hint" : "move";
    const std::pair<std::string_view, std::string> wanted[] = {
        {"mode", mode},
        {"window_seconds", fmt::format("{}", options.window_seconds)},
        {"memory", options.memory},
        {"cold_backing", options.cold},
        {"policy", options.policy},
        {"hint_cold", options.hints == "none" ? "off" : "on"},
        {"hint_pageout", options.hints == "pageout" ? "on" : "off"},
    };
    for (const auto& [name, value] : wanted)
        if (std::string why = library.set(name, value); !why.empty()) return why;
    // Nobody asks a server for what its windows were; 1024 of them, which is the default, are 4 MiB.
    if (std::getenv("OBASE_HISTORY_WINDOWS") == nullptr)
        if (std::string why = library.set("history_windows", "1"); !why.empty()) return why;
    obase::runtime& runtime = managing_runtime();
    if (std::string why = runtime.configure(library); !why.empty()) return why;
    return nothing ? "" : runtime.start();
}

int run(int argc, char** argv) {
    settings options;
    parse_command_line(argc, argv, options);
    if (options.threads == 0)
        options.threads = std::max(1u, std::thread::hardware_concurrency() / 2);
    if (!options.log_file.empty()) {
        const int log =
            ::open(options.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        if (log < 0 || ::dup2(log, STDERR_FILENO) < 0) {
            fmt::print(stderr, "crestdb: --logfile {}: {}\n", options.log_file,
                       std::generic_category().message(errno));
            return 1;
        }
    }
    // A snapshot that cannot be written is known at the start, not at the first save.
    struct stat about{};
    if (::stat(options.directory.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) {
        fmt::print(stderr, "crestdb: --dir {}: no such directory\n", options.directory);
        return 1;
    }
    if (const std::string why = cold_directory_fails(options); !why.empty()) {
        fmt::print(stderr, "crestdb: {}\n", why);
        return 1;
    }
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD,
                SIG_DFL); // ignored, as inherited from some parents, no child's status is there
    std::signal(SIGXFSZ, SIG_IGN); // a file too large is an error of the write, not the end
    if (const std::string why = configure_obase(options); !why.empty()) {
        // The library alone knows which policies there are.
        constexpr std::string_view policy = "policy (OBASE_POLICY): ";
        if (!why.starts_with(policy)) {
            fmt::print(stderr, "crestdb: {}\n", why);
            return 1;
        }
        fmt::print(stderr, "crestdb: --policy: {}\n", why.substr(policy.size()));
        return 2;
    }
    update_now();
    instance server(options);
    auto net = std::make_unique<network>(server);
    if (const std::string why = net->listen(); !why.empty()) {
        fmt::print(stderr, "crestdb: {}\n", why);
        return 1;
    }
    server.log(fmt::format("crestdb {} with {} I/O thread{}", obase::version(), options.threads,
                           options.threads == 1 ? "" : "s"));
    server.log(where_cold_goes(options));
    if (managed_by != managing::none)
        for (const std::string& problem : managing_runtime().self_check()) server.log(problem);
    snapshot::remove_unfinished(server.snapshot_path());
    if (options.load_snapshot) {
        const snapshot::was_read loaded = snapshot::read(server.keys, server.snapshot_path());
        if (!loaded.error.empty() && !loaded.missing) {
            server.log(loaded.error +
                       "; nothing was loaded. Move it away, or start with --no-load");
            return 1;
        }
        if (!loaded.missing)
            server.log(fmt::format(
                "{} keys read from {}{}", loaded.keys, server.snapshot_path(),
                loaded.ended == 0 ? "" : fmt::format(", {} had expired", loaded.ended)));
        server.keys.count.dirty = 0;
    }
    if (!options.pid_file.empty() &&
        !(std::ofstream(options.pid_file) << ::getpid() << std::endl)) {
        fmt::print(stderr, "crestdb: --pidfile {}: it cannot be written\n", options.pid_file);
        return 1;
    }
    server.log("ready");
    net->run();
    int status = 0;
    server.abandon_background_save();
    if (options.save_at_shutdown && !server.no_save && !server.save().empty()) status = 1;
    if (!options.pid_file.empty()) ::unlink(options.pid_file.c_str());
    net.reset();
    server.log("stopped");
    // Not through the destructors: what is cold would be read from the disk to be freed, all of it.
    std::exit(status);
}

} // namespace

} // namespace crestdb::server

// For jemalloc, which looks for this name: a thread of its own gives back what clients have left, within some seconds.
// Without it only a thread that allocates does that, and a server that nobody asks keeps what it had.
extern "C" __attribute__((visibility("default"))) const char* malloc_conf;
const char* malloc_conf = "background_thread:true,max_background_threads:1,dirty_decay_ms:3000";

int main(int argc, char** argv) {
    try {
        return crestdb::server::run(argc, argv);
    } catch (const std::exception& error) {
        fmt::print(stderr, "crestdb: {}\n", error.what());
        return 1;
    }
}
