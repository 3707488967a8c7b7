// SPDX-License-Identifier: MIT
#include "tools/handles/scripts.hpp"

#include "tools/bench/bench.hpp"
#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace obase::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t shown = 2000; // bytes, of what a script that failed said last

std::string or_default(const char* variable, const char* otherwise) {
    const char* const value = std::getenv(variable);
    return value != nullptr && *value != 0 ? value : otherwise;
}

json read_json(const std::string& path) {
    std::ifstream file(path);
    return file ? json::parse(file, nullptr, false) : json(json::value_t::discarded);
}

} // namespace

std::string folder_of(const script_settings& settings, const std::string& name) {
    if (!settings.directory.empty()) return (fs::path(settings.directory) / name).string();
    const std::string cache = or_default("XDG_CACHE_HOME", "");
    if (!cache.empty()) return (fs::path(cache) / "obase/handles" / name).string();
    return (fs::path(or_default("HOME", "/var/tmp")) / ".cache/obase/handles" / name).string();
}

described describe_programs(const script_settings& settings, const std::string& name) {
    const fs::path source = settings.source.empty() ? OBASE_SOURCE_FOLDER : settings.source;
    const fs::path script = source / "compiler/handles/programs" / (name + ".py");
    std::error_code error;
    if (!fs::exists(script, error))
        throw std::runtime_error(fmt::format(
            "handles: there is no '{}'; expected --source to name obase's source folder",
            script.string()));
    const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
    if (!fs::exists(bin / "obase-clang", error))
        return {{},
                fmt::format("'{}' is not there: obase was built without its compiler",
                            (bin / "obase-clang").string())};
    const std::string folder = folder_of(settings, name);
    fs::create_directories(folder, error);
    if (error)
        throw std::runtime_error(
            fmt::format("handles: cannot make '{}': {}", folder, error.message()));
    const std::string file = folder + "/described.json";
    fs::remove(file, error);
    tell(fmt::format("{}: fetching, and what has to be built first", name));
    const finished_program done = run_program(
        {"python3", script.string(), "--clang", or_default("OBASE_CLANG", "clang-19"), "--bin",
         bin.string(), "--source", source.string(), "--out", folder, "--describe", file});
    if (interrupted()) throw interruption(name);
    if (done.exit_status == 77) {
        const std::size_t reason = done.output.rfind("skipped: ");
        std::string said =
            reason == std::string::npos ? done.output : done.output.substr(reason + 9);
        while (said.ends_with('\n')) said.pop_back();
        return {{}, std::move(said)};
    }
    described result{read_json(file), ""};
    if (done.exit_status != 0 || result.json.is_discarded())
        throw std::runtime_error(fmt::format(
            "handles: {} failed with status {}:\n{}", script.string(), done.exit_status,
            done.output.substr(done.output.size() - std::min(done.output.size(), shown))));
    return result;
}

json take_figures(const std::string& path) {
    json figures = read_json(path);
    std::error_code ignored;
    fs::remove(path, ignored);
    return figures.is_discarded() ? json(nullptr) : figures;
}

} // namespace obase::tools
