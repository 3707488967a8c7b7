// SPDX-License-Identifier: MIT
//
// obase audit: runs a command, a program's tests say, with OBASE_AUDIT=1, and tells what the audit of every
// process of it has found (docs/audit.md).
//
//     obase audit [--json] [--strict] [--known FILE] -- COMMAND ARGUMENT...
//
// Exit status: the command's, if it is not 0; 1 if there are errors, or if no process of it was audited; 2 the command line
// was not understood; 127 the command was not found.
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

using nlohmann::json;

struct settings {
    bool as_json = false;
    bool strict = false;
    std::string known;
    std::vector<std::string> command;
};

// Removed with all that is in it.
class temporary_folder {
  public:
    temporary_folder() {
        std::string name = (std::filesystem::temp_directory_path() / "obase-audit-XXXXXX").string();
        if (::mkdtemp(name.data()) == nullptr)
            throw std::system_error(errno, std::generic_category(),
                                    fmt::format("no folder for reports ({})", name));
        path_ = name;
    }
    ~temporary_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    temporary_folder(const temporary_folder&) = delete;
    temporary_folder& operator=(const temporary_folder&) = delete;
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};

int run(const settings& asked, const std::filesystem::path& folder) {
    const pid_t child = ::fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (child == 0) {
        ::setenv("OBASE_AUDIT", "1", 1);
        ::setenv("OBASE_AUDIT_REPORT", (folder / "%p.json").c_str(), 1);
        if (asked.strict) ::setenv("OBASE_AUDIT_STRICT", "1", 1);
        if (!asked.known.empty())
            ::setenv("OBASE_AUDIT_KNOWN", std::filesystem::absolute(asked.known).c_str(), 1);
        std::vector<char*> words;
        for (const std::string& word : asked.command)
            words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        fmt::print(stderr, "obase audit: '{}' cannot be run: {}\n", words[0], std::strerror(errno));
        std::_Exit(errno == ENOENT ? 127 : 126);
    }
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A finding of many processes is told once.
json summary_of(const std::filesystem::path& folder) {
    std::map<std::string, json> findings; // by kind and text
    json all = {{"processes", 0}, {"findings", json::array()}, {"unreadable", 0}};
    constexpr const char* counts[] = {"errors",       "suspected",    "known",       "not_listed",
                                      "operations",   "audited",      "objects",     "moved",
                                      "skipped_busy", "skipped_open", "skipped_time"};
    for (const char* name : counts) all[name] = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        std::ifstream file(entry.path());
        const json one = json::parse(file, nullptr, /*allow_exceptions=*/false);
        if (!one.is_object()) {
            all["unreadable"] = all["unreadable"].get<unsigned>() + 1;
            continue;
        }
        all["processes"] = all["processes"].get<unsigned>() + 1;
        for (const char* name : counts)
            all[name] = all[name].get<std::uint64_t>() + one.value(name, std::uint64_t{0});
        for (const json& found : one["findings"]) {
            json& known = findings[found.value("kind", "") + found.value("text", "")];
            const std::uint64_t count =
                found.value("count", std::uint64_t{1}) +
                (known.is_null() ? 0 : known.value("count", std::uint64_t{0}));
            known = found;
            known["count"] = count;
        }
    }
    const auto rank = [](const json& f) {
        return f["severity"] == "error" ? 0 : f["severity"] == "suspected" ? 1 : 2;
    };
    for (int ranked = 0; ranked < 3; ++ranked)
        for (const auto& [key, found] : findings)
            if (rank(found) == ranked) all["findings"].push_back(found);
    return all;
}

void print_text(const json& all) {
    for (const json& found : all["findings"])
        fmt::print("{}: {}\n", found["severity"].get<std::string>(),
                   found["text"].get<std::string>());
    fmt::print("obase audit: {} errors, {} suspected, {} known to be fine; {} processes, "
               "{} operations, {} of them audited, {} objects moved {} times\n",
               all["errors"].get<std::uint64_t>(), all["suspected"].get<std::uint64_t>(),
               all["known"].get<std::uint64_t>(), all["processes"].get<unsigned>(),
               all["operations"].get<std::uint64_t>(), all["audited"].get<std::uint64_t>(),
               all["objects"].get<std::uint64_t>(), all["moved"].get<std::uint64_t>());
}

int audit(const settings& asked) {
    const temporary_folder folder;
    const int status = run(asked, folder.path());
    if (status == 127 && std::filesystem::is_empty(folder.path())) return status;
    json all = summary_of(folder.path());
    all["status"] = status;
    if (asked.as_json)
        fmt::print("{}\n", all.dump(2));
    else
        print_text(all);
    if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to the standard output");
    if (status != 0) return status;
    if (all["audited"] == 0) {
        fmt::print(stderr,
                   "obase audit: nothing was audited: no process of '{}' was linked by obase-clang "
                   "and ended an operation on marked fields\n",
                   asked.command.front());
        return 1;
    }
    return all["errors"] == 0 && all["unreadable"] == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) try {
    CLI::App app(
        "Runs a command, and shows addresses that outlive their operation, objects with two "
        "owners and what else the compiler cannot see",
        "obase audit");
    settings asked;
    app.add_flag("--json", asked.as_json, "print the report as JSON");
    app.add_flag("--strict", asked.strict, "what is only suspected is an error, too");
    app.add_option("--known", asked.known, "a file of findings that are known to be fine")
        ->check(CLI::ExistingFile);
    app.add_option("command", asked.command, "the command and its arguments, behind --")
        ->required();
    app.positionals_at_end();
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& help) {
        return app.exit(help);
    } catch (const CLI::ExtrasError& error) {
        // CLI11 names what it was given, `--` and the rest of the line included.
        for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i)
            if (argv[i][0] == '-' && app.get_option_no_throw(std::string(argv[i]).substr(
                                         0, std::string(argv[i]).find('='))) == nullptr) {
                fmt::print(stderr, "obase audit: {} is not an option\nTry 'obase audit --help'.\n",
                           argv[i]);
                return 2;
            }
        fmt::print(stderr, "obase audit: {}\nTry 'obase audit --help'.\n", error.what());
        return 2;
    } catch (const CLI::ParseError& error) {
        fmt::print(stderr, "obase audit: {}\nTry 'obase audit --help'.\n", error.what());
        return 2;
    }
    return audit(asked);
} catch (const std::exception& error) {
    fmt::print(stderr, "obase audit: {}\n", error.what());
    return 1;
}
