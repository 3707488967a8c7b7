// SPDX-License-Identifier: MIT
//
// The trace parser on arbitrary bytes. The first byte chooses the format, the second how the rest
// is cut into pieces. Cut or whole, the outcome must be the same trace or the same message, and a
// trace must be consistent: keys dense in the order of their first appearance. Decompression is
// libarchive's, which has fuzzers of its own.
#include "tools/workload/trace_parser.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

struct outcome {
    std::optional<workload::trace> result;
    std::string message;
    bool operator==(const outcome&) const = default;
};

outcome parse(std::string_view text, std::size_t piece, const workload::trace_options& options) {
    try {
        workload::trace_parser parser("name", options);
        for (std::size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece));
        return {parser.finish(), ""};
    } catch (const std::runtime_error& error) {
        return {std::nullopt, error.what()};
    }
}

void check(const workload::trace& t, const workload::trace_options& options) {
    require(t.format() != workload::trace_format::automatic);
    require(t.entries().size() <= options.max_operations);
    std::size_t keys = 0;
    for (const workload::trace_entry& e : t.entries()) {
        require(e.key <= keys);
        keys += e.key == keys;
        require(e.key < t.records().size());
        require(e.value_length == 0 || t.records()[e.key].value_length != 0);
    }
    require(keys == t.keys());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    workload::trace_options options;
    options.format = static_cast<workload::trace_format>(data[0] % 8);
    if (data[0] >= 128) options.max_operations = data[0] - 127U;
    const std::string_view text(reinterpret_cast<const char*>(data) + 2, size - 2);
    const outcome whole = parse(text, size, options);
    require(whole == parse(text, data[1] % 16 + 1U, options));
    require(whole.result.has_value() == whole.message.empty());
    if (whole.result) check(*whole.result, options);
    return 0;
}
