// SPDX-License-Identifier: MIT
//
// A stranger's C++ program: fills a table, uses it, has the runtime move the objects, and finds
// every text, each somewhere else than before, since all were used.
#include <obase/obase.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct entry {
    obase::guide<obase::bytes> text;
    std::uintptr_t first_address = 0;
};

std::string text_of(std::size_t number) { return "text number " + std::to_string(number); }

// How many entries hold what they should.
std::size_t intact(const std::vector<entry>& table) {
    std::size_t good = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
        const obase::scope s;
        good += std::string_view(*table[i].text) == text_of(i);
    }
    return good;
}

} // namespace

int main() {
    std::vector<entry> table(1000);
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i].text = obase::make_bytes(text_of(i));
        table[i].first_address = reinterpret_cast<std::uintptr_t>(table[i].text.peek());
    }

    std::size_t good = intact(table);
    for (int window = 0; window < 4; ++window) {
        if (obase::runtime::get().collect_now() != obase::collect_result::done) {
            std::puts("collect_now() did not do a whole window");
            return 1;
        }
        const std::size_t now = intact(table);
        good = now < good ? now : good;
    }

    std::size_t moved = 0;
    for (const entry& e : table)
        moved += reinterpret_cast<std::uintptr_t>(e.text.peek()) != e.first_address;
    std::printf("obase %s (%s): %zu of %zu texts intact, %zu moved\n", obase::version(),
                obase::build(), good, table.size(), moved);
    return good == table.size() && moved == table.size() ? 0 : 1;
}
