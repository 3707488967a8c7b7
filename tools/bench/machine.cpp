// SPDX-License-Identifier: MIT
#include "tools/bench/machine.hpp"

#include <obase/version.hpp>

#include <fmt/format.h>

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

namespace obase::tools {
namespace {

// The kernel's "model name" says little inside some virtual machines, so family and model go with
// it.
std::string processor() {
    std::ifstream file("/proc/cpuinfo");
    std::string name = "unknown processor", vendor, family, model;
    for (std::string line; std::getline(file, line) && !line.empty();) {
        const std::size_t colon = line.find(": ");
        if (colon == std::string::npos) continue;
        const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
        const std::string value = line.substr(colon + 2);
        if (key == "model name") name = value;
        if (key == "cpu family") family = value;
        if (key == "model") model = value;
    }
    return fmt::format("{} (family {}, model {})", name, family, model);
}

double gibibytes(long pages) {
    return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) /
           (1024.0 * 1024.0 * 1024.0);
}

} // namespace

nlohmann::json describe_machine() {
    utsname kernel{};
    ::uname(&kernel);
    double load[3] = {};
    if (::getloadavg(load, 3) != 3) std::fill(load, load + 3, -1.0);
    return {{"processor", processor()},
            {"cores", ::sysconf(_SC_NPROCESSORS_ONLN)},
            {"memory_gib", gibibytes(::sysconf(_SC_PHYS_PAGES))},
            {"kernel", kernel.release},
            {"load", {load[0], load[1], load[2]}},
            {"version", obase::version()},
            {"build", obase::build()}};
}

std::string machine_line() {
    const nlohmann::json m = describe_machine();
    return fmt::format(
        "{}, {} cores, {:.0f} GiB, Linux {}; load {:.1f} {:.1f} {:.1f}; obase {}, {}",
        m["processor"].get<std::string>(), m["cores"].get<long>(), m["memory_gib"].get<double>(),
        m["kernel"].get<std::string>(), m["load"][0].get<double>(), m["load"][1].get<double>(),
        m["load"][2].get<double>(), m["version"].get<std::string>(), m["build"].get<std::string>());
}

std::size_t last_level_cache_bytes() noexcept {
    const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

} // namespace obase::tools
