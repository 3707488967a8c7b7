// SPDX-License-Identifier: MIT
//
// Fuzz target: formats, key specifications and records. The input is, line by line: a format, ranges
// (--key), fields (-k), flags (n, r, u, s, z, and a separator behind t); what follows is data. Whatever
// they are, parsing refuses or accepts, records cover the data without a gap, and entries never
// contradict the keys they are made of.
#include "wiscsort/error.hpp"
#include "wiscsort/format/entry.hpp"
#include "wiscsort/format/key_spec.hpp"
#include "wiscsort/units.hpp"

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

std::string_view next_line(std::string_view& text) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    return line;
}

std::vector<std::string> words(std::string_view line) {
    std::vector<std::string> all;
    while (!line.empty()) {
        const std::size_t end = line.find(' ');
        if (end != 0) all.emplace_back(line.substr(0, end));
        line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    }
    return all;
}

void require(bool holds) {
    if (!holds) std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace wiscsort;
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    try {
        record_format format = record_format::parse(next_line(rest));
        key_spec::options options;
        options.ranges = words(next_line(rest));
        options.fields = words(next_line(rest));
        const std::string_view flags = next_line(rest);
        const auto has = [&](char c) { return flags.find(c) != std::string_view::npos; };
        options.numeric = has('n');
        options.reverse = has('r');
        options.unique = has('u');
        options.stable = has('s');
        if (has('z')) format.terminator = '\0';
        if (const std::size_t t = flags.find('t');
            t != std::string_view::npos && t + 1 < flags.size())
            options.separator = flags[t + 1];
        const key_spec keys(options, format);
        std::vector<std::string> found_keys;
        for (std::size_t at = 0; at < rest.size() && found_keys.size() < 64;) {
            record_view view;
            if (find_record(format, rest.data() + at, rest.size() - at, view) == found::torn) {
                require(format.kind != record_format::kinds::lines);
                break;
            }
            require(view.stored.data() == rest.data() + at && !view.stored.empty());
            require(view.body.data() >= view.stored.data() &&
                    view.body.data() + view.body.size() <= view.stored.data() + view.stored.size());
            require(view.written_size - view.stored.size() <= 1);
            std::string buffer;
            found_keys.emplace_back(keys.key_of(view.body, buffer));
            if (keys.fixed_length() != 0) require(found_keys.back().size() == keys.fixed_length());
            at += view.stored.size();
        }
        for (std::size_t i = 0; i + 1 < found_keys.size(); ++i) {
            const std::string &a = found_keys[i], &b = found_keys[i + 1];
            const std::size_t skip = common_prefix(a, b) / 2;
            const entry x = make_entry(a, skip, keys.reverse(), 1);
            const entry y = make_entry(b, skip, keys.reverse(), 2);
            if (!x.same_prefix(y)) require((x < y) == (keys.reverse() ? b < a : a < b));
            if (a == b) require(x.same_prefix(y));
        }
    } catch (const usage_error&) {
        // Refused, with a message.
    }
    return 0;
}
