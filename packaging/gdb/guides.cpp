// SPDX-License-Identifier: MIT
//
// One guide in every state of its word, for the gdb printer's test. The words are written from the
// outside, as bytes: no runtime runs here, so nothing changes them before gdb looks.
#include <obase/guide.hpp>
#include <obase/word/arming.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

struct entry {
    int key;
    int value;
};

namespace {

using words = obase::word::arming;
using entry_guide = obase::guide<entry>;

static_assert(sizeof(entry_guide) == sizeof(obase::word::bits));

struct place {
    alignas(entry_guide) std::byte bytes[sizeof(entry_guide)];

    explicit place(std::uint64_t word) { std::memcpy(bytes, &word, sizeof word); }
    // Never constructed, so never destroyed: a destructor would free an object that is no heap's.
    entry_guide& guide() { return *std::launder(reinterpret_cast<entry_guide*>(bytes)); }
};

void stop_here(const void*) {}

} // namespace

int main() {
    entry object{7, 49};
    const auto address = reinterpret_cast<std::uintptr_t>(&object);
    place places[] = {place(0), place(address), place(words::make_armed(address, 12)),
                      place(words::make_born(address)), place(words::make_armed(0x10, 3))};
    entry_guide& null = places[0].guide();
    entry_guide& plain = places[1].guide();
    entry_guide& armed = places[2].guide();
    entry_guide& born = places[3].guide();
    entry_guide& unreadable = places[4].guide();
    for (const void* guide : {static_cast<const void*>(&null), static_cast<const void*>(&plain),
                              static_cast<const void*>(&armed), static_cast<const void*>(&born),
                              static_cast<const void*>(&unreadable)})
        stop_here(guide);
    return 0;
}
