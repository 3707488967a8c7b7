// SPDX-License-Identifier: MIT
#include "tools/fragmentation/fragmentation.hpp"

#include "tools/bench/child_process.hpp"
#include "tools/bench/interrupt.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace obase::tools {
namespace {

using nlohmann::json;

// Where programs of the build, or of an installation, lie: beside this one.
std::string beside(const std::string& name) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) throw std::runtime_error("fragmentation: /proc/self/exe cannot be read");
    return (self.parent_path() / name).string();
}

std::vector<std::string> command_for(const std::string& allocator) {
    // The tool has an allocator of its own, and may have been told to load others.
    std::vector<std::string> words{"env", "-u", "LD_PRELOAD"};
    if (allocator == "jemalloc") words.emplace_back("LD_PRELOAD=libjemalloc.so.2");
    if (allocator == "mimalloc") words.emplace_back("LD_PRELOAD=libmimalloc.so.2");
    if (allocator == "obase-off") words.emplace_back("OBASE_HANDLES=off");
    words.push_back(beside(allocator.starts_with("obase") ? "obase-fragmentation-load-handles"
                                                          : "obase-fragmentation-load"));
    return words;
}

} // namespace

const std::vector<std::string>& fragmentation_allocators() {
    static const std::vector<std::string> all{"glibc", "jemalloc", "mimalloc", "obase-off",
                                              "obase"};
    return all;
}

bench_result bench_fragmentation(const fragmentation_settings& settings) {
    bench_result result;
    result.json["program"] = settings.program;
    result.json["runs"] = json::array();
    const std::vector<std::string>& allocators =
        settings.allocators.empty() ? fragmentation_allocators() : settings.allocators;
    for (const std::string& allocator : allocators) {
        if (interrupted()) {
            result.partial = true;
            break;
        }
        std::vector<std::string> words = command_for(allocator);
        words.push_back(std::to_string(settings.scale));
        for (const unsigned at : settings.seconds) words.push_back(std::to_string(at));
        const std::optional<std::string> text = output_of_program(words);
        if (!text.has_value()) {
            if (interrupted()) {
                result.partial = true;
                break;
            }
            throw std::runtime_error(
                fmt::format("fragmentation: {} failed with {}; expected it beside this program",
                            words[words.size() - settings.seconds.size() - 2], allocator));
        }
        // The dynamic linker, too, may have something to say.
        const std::size_t begin = text->find('{');
        json run =
            json::parse(begin == std::string::npos ? "" : text->substr(begin), nullptr, false);
        if (run.is_discarded())
            throw std::runtime_error(
                fmt::format("fragmentation: with {} the load wrote '{}', which is no JSON",
                            allocator, text->substr(0, 200)));
        run["allocator"] = allocator;
        const std::string command = fmt::format(
            "obase bench fragmentation --allocator {} --scale {}", allocator, settings.scale);
        for (const auto& [at, mib] : run["rss_mib"].items())
            result.figures.push_back(
                counted_figure(fmt::format("{}, RSS after {} s", allocator, at), "MiB",
                               mib.get<double>(), command));
        result.figures.push_back(counted_figure(fmt::format("{}, longest stall", allocator), "us",
                                                run["longest_stall_us"].get<double>(), command));
        result.json["runs"].push_back(std::move(run));
    }
    return result;
}

} // namespace obase::tools
