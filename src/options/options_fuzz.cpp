// SPDX-License-Identifier: MIT
//
// The option parser on arbitrary text. The input is lines "NAME=value"; they go in as an
// environment and, one by one, as code. Whatever happens, every effective value must be one that
// the parser itself accepts and reads back to the same text, and a refusal must change nothing.
#include <obase/options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

void check_effective(const obase::options& settings) {
    require(settings.out_of_range().empty());
    obase::options copy;
    for (const obase::option_row& row : obase::option_rows()) {
        const std::string value = settings.get(row.name);
        require(copy.set(row.name, value).empty());
        require(copy.get(row.name) == value);
    }
    require(settings.text().find("OBASE_MODE=") != std::string::npos);
    require(settings.scaled_window_seconds() > 0);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    std::vector<const char*> environment;
    for (const std::string& line : lines) environment.push_back(line.c_str());
    environment.push_back(nullptr);

    obase::options from_environment;
    require(from_environment.apply_environment(environment.data()).size() <= lines.size());
    check_effective(from_environment);

    obase::options from_code;
    for (const std::string& line : lines) {
        const std::size_t equals = line.find('=');
        if (equals == std::string::npos) continue;
        const std::string_view whole = line;
        const obase::options before = from_code;
        if (!from_code.set(whole.substr(0, equals), whole.substr(equals + 1)).empty()) {
            require(from_code.text() == before.text());
        }
    }
    check_effective(from_code);
    return 0;
}
