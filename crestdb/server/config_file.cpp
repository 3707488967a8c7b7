// SPDX-License-Identifier: MIT
#include "crestdb/server/config_file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <fstream>
#include <string_view>
#include <system_error>

namespace crestdb::server {

namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view space = " \t\r";
    const std::size_t first = text.find_first_not_of(space);
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(space) - first + 1);
}

} // namespace

std::string read_config_file(const std::string& path, CLI::App& app, option_places& places) {
    std::ifstream file(path);
    if (!file) return fmt::format("--config {}: {}", path, std::generic_category().message(errno));
    std::string text;
    for (unsigned number = 1; std::getline(file, text); ++number) {
        const std::string_view line = trimmed(text);
        if (line.empty() || line[0] == '#' || line[0] == ';') continue;
        const std::string place = fmt::format("{}:{}", path, number);
        const std::size_t equals = line.find('=');
        if (equals == line.npos)
            return fmt::format("{}: expected 'name = value', not '{}'", place, line);
        const std::string name(trimmed(line.substr(0, equals)));
        std::string_view value = trimmed(line.substr(equals + 1));
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"')
            value = value.substr(1, value.size() - 2);
        CLI::Option* const option = app.get_option_no_throw("--" + name);
        if (name.empty() || option == nullptr || !option->get_configurable())
            return fmt::format("{}: '{}' is no setting; crestdb --help has them all", place, name);
        if (const auto other = places.find(option); other != places.end())
            return fmt::format("{}: '{}' is set already, at {}", place, name, other->second);
        if (option->count() != 0) continue; // by the command line
        try {
            if (option->get_expected_min() == 0)
                option->add_result(option->get_flag_value(name, std::string(value)));
            else
                option->add_result(std::string(value));
            option->run_callback();
        } catch (const CLI::Error& error) {
            return fmt::format("{}: {}", place, error.what());
        }
        places.emplace(option, place);
    }
    // A directory can be opened, and not read.
    if (file.bad()) return fmt::format("--config {}: it cannot be read", path);
    return "";
}

} // namespace crestdb::server
