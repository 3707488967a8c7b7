// SPDX-License-Identifier: MIT
//
// A program as README shows, for valgrind's memcheck: objects are made, used, moved and freed, and
// nothing that memcheck reports is obase's doing. Exits with 1 if nothing moved: then memcheck has
// seen nothing.
#include <obase/obase.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct entry {
    obase::guide<obase::bytes> value;
};

// Where the text lies now. Counts as an access.
const void* place_of(const entry& e) {
    obase::scope s;
    return e.value->data();
}

} // namespace

int main() {
    obase::runtime& runtime = obase::runtime::get();
    runtime.set_mode(obase::run_mode::move);
    std::vector<entry> entries(500);
    for (std::size_t i = 0; i < entries.size(); ++i)
        entries[i].value = obase::make_bytes("text number " + std::to_string(i));
    const void* const born_at = place_of(entries[3]);
    for (int window = 0; window < 8; ++window) {
        std::size_t sum = 0;
        for (std::size_t i = 0; i < entries.size(); i += 3) {
            obase::scope s;
            for (std::size_t k = 0; k < entries[i].value->size(); ++k)
                sum += static_cast<unsigned char>(entries[i].value->data()[k]);
            if (i % 2 == 0) entries[i].value = obase::make_bytes("another text");
        }
        if (sum == 0 || runtime.collect_now() != obase::collect_result::done) return 1;
    }
    const bool moved = place_of(entries[3]) != born_at;
    std::puts(moved ? "objects moved" : "nothing moved");
    return moved ? 0 : 1;
}
