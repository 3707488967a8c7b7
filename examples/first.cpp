// SPDX-License-Identifier: MIT
//
// A first program: guides in a vector, scopes, and what the runtime did. All texts are read; some are
// read all the time, and end up next to each other.
#include <obase/obase.hpp>

#include <cstdio>
#include <string>
#include <vector>

struct entry {
    obase::guide<obase::bytes> text; // one 64-bit word; owns a byte string that may move
};

int main() {
    std::vector<entry> table(10'000);
    for (std::size_t i = 0; i < table.size(); ++i)
        table[i].text = obase::make_bytes("text number " + std::to_string(i));

    obase::runtime& runtime = obase::runtime::get();
    std::size_t read = 0;
    for (int window = 0; window < 3; ++window) {
        for (std::size_t i = 0; i < table.size(); i += 10) { // one in ten is hot
            const obase::scope s;                            // addresses are good until it ends
            read += table[i].text->size();
        }
        // By itself every 120 s (OBASE_WINDOW_SECONDS).
        if (runtime.collect_now() != obase::collect_result::done) return 1;
    }
    std::printf("%zu bytes read\n", read);

    for (std::size_t i = 0; i < table.size(); ++i) {
        const obase::scope s;
        if (*table[i].text != "text number " + std::to_string(i)) return 1;
    }
    for (const std::string& line : runtime.self_check())
        std::printf("self-check: %s\n", line.c_str());
    return 0;
}
