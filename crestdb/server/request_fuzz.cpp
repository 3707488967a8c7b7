// SPDX-License-Identifier: MIT
//
// Any bytes, in two cuttings that the first byte chooses: the requests must be the same, and within the
// parser's bounds.
#include "crestdb/server/request.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using crestdb::server::request_parser;

std::vector<std::string> parsed(const char* data, std::size_t size, std::size_t step) {
    std::vector<std::string> found;
    request_parser parser;
    std::size_t begin = 0;
    for (std::size_t end = std::min(step, size);; end = std::min(end + step, size)) {
        for (;;) {
            const auto r = parser.parse({data + begin, end - begin}, true, 1 << 16);
            if (r == request_parser::result::incomplete) break;
            if (r == request_parser::result::error) {
                found.push_back(parser.error());
                return found;
            }
            if (parser.used() == 0 || parser.used() > end - begin) std::abort();
            std::string all = std::to_string(parser.arguments().size());
            for (const auto arg : parser.arguments())
                all += ":" + std::to_string(arg.size()) + ":" + std::string(arg);
            found.push_back(all);
            begin += parser.used();
            if (begin == end) break;
        }
        if (end == size) return found;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto* text = reinterpret_cast<const char*>(data) + 1;
    const std::size_t step = data[0] % 17 + 1u;
    if (parsed(text, size - 1, size - 1) != parsed(text, size - 1, step)) {
        std::fprintf(stderr, "pieces of %zu bytes give other requests than the whole\n", step);
        std::abort();
    }
    return 0;
}
