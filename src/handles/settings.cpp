// SPDX-License-Identifier: MIT
#include "handles/settings.hpp"

#include "options/handles_variables.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>

namespace obase::handles {

namespace {

constexpr double used_with_temperature = 0.05;

void refuse(const char* name, const char* value, const char* expected) noexcept {
    std::fprintf(stderr, "obase: %s is '%s'; expected %s; the default stays\n", name, value,
                 expected);
}

void read(const char* name, unsigned long& to, const char* expected) noexcept {
    const char* const value = std::getenv(name);
    if (value == nullptr) return;
    char* end = nullptr;
    const unsigned long number = std::strtoul(value, &end, 10);
    if (end == value || *end != 0 || *value == '-' || number == 0)
        refuse(name, value, expected);
    else
        to = number;
}

void read(const char* name, double least, double most, double& to, const char* expected) noexcept {
    const char* const value = std::getenv(name);
    if (value == nullptr) return;
    char* end = nullptr;
    const double number = std::strtod(value, &end);
    if (end == value || *end != 0 || !(number >= least && number <= most))
        refuse(name, value, expected);
    else
        to = number;
}

// A name with a slip in it would be no setting, and nothing would say so.
void report_unknown_names() noexcept {
    for (const char* const* entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (!name.starts_with(options_internal::handles_prefix) ||
            options_internal::is_handles_variable(name))
            continue;
        std::fprintf(stderr, "obase: '%.*s' is not a variable of obase; there are:",
                     static_cast<int>(name.size()), name.data());
        for (const std::string_view known : options_internal::handles_variables)
            std::fprintf(stderr, " %.*s", static_cast<int>(known.size()), known.data());
        std::fputc('\n', stderr);
    }
}

} // namespace

settings settings::from_environment() noexcept {
    settings all;
    report_unknown_names();
    if (const char* const value = std::getenv("OBASE_HANDLES"); value != nullptr) {
        all.off = std::strcmp(value, "off") == 0;
        if (!all.off && std::strcmp(value, "on") != 0) refuse("OBASE_HANDLES", value, "on or off");
    }
    read("OBASE_HANDLES_STRESS", all.stress, "a number of polls, from 1");
    read("OBASE_HANDLES_TICK_MS", all.tick_ms, "milliseconds, from 1");
    read("OBASE_HANDLES_START", 1.0, 1000.0, all.limits.start,
         "memory divided by live bytes, from 1");
    read("OBASE_HANDLES_STOP", 1.0, 1000.0, all.limits.stop,
         "memory divided by live bytes, from 1");
    read("OBASE_HANDLES_SHARE", 0.001, 1.0, all.limits.share,
         "a share of a processor, from 0.001 to 1");
    read("OBASE_HANDLES_MAPPINGS", all.mappings, "a number of mappings, from 1");
    // Where objects have temperatures most runs that hold something hot are away, too.
    if (const char* const mode = std::getenv("OBASE_MODE");
        mode != nullptr && std::strcmp(mode, "off") != 0)
        all.used.share = used_with_temperature;
    read("OBASE_HANDLES_USED", 0.0, 1.0, all.used.share,
         "a share of the program's time, from 0 to 1");
    read("OBASE_HANDLES_TRACK", 0.0001, 1.0, all.track,
         "a share of the program's time, from 0.0001 to 1");
    if (all.limits.stop > all.limits.start) all.limits.stop = all.limits.start;
    const char* const show = std::getenv("OBASE_SHOW_STATS");
    all.show = show != nullptr && std::strcmp(show, "1") == 0;
    if (all.off) all.stress = 0;
    return all;
}

} // namespace obase::handles
