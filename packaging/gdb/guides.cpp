// SPDX-License-Identifier: MIT
//
// A guide or owner in every state of its word, for the gdb printers' test. The words are written
// from the outside, as bytes: no runtime runs here, so nothing changes them before gdb looks.
#include <obase/guide.hpp>
#include <obase/owner.hpp>
#include <obase/plain.hpp>
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

// Room for a View (a guide or an owner) that holds a word but was never constructed, and so is
// never destroyed: a destructor would free an object that is no heap's.
template <class View>
class place {
    static_assert(sizeof(View) == sizeof(obase::word::bits));

  public:
    explicit place(obase::word::bits word) { std::memcpy(bytes_, &word, sizeof word); }
    View& view() { return *std::launder(reinterpret_cast<View*>(bytes_)); }

  private:
    alignas(View) std::byte bytes_[sizeof(View)];
};

void stop_here() {}

} // namespace

int main() {
    entry object{7, 49};
    const auto address = reinterpret_cast<std::uintptr_t>(&object);

    using guide = obase::guide<entry>;
    place<guide> places[] = {
        place<guide>(0),
        place<guide>(address),
        place<guide>(words::make_armed(address, 12)),
        place<guide>(words::make_born(address)),
        place<guide>(words::make_armed(0x10, 3)),
    };
    [[maybe_unused]] guide& null = places[0].view();
    [[maybe_unused]] guide& plain = places[1].view();
    [[maybe_unused]] guide& armed = places[2].view();
    [[maybe_unused]] guide& born = places[3].view();
    [[maybe_unused]] guide& unreadable = places[4].view();

    place<obase::owner<entry>> owned(words::make_born(address));
    [[maybe_unused]] obase::owner<entry>& owner = owned.view();
    place<obase::guide<entry, obase::plain>> unmanaged(address);
    [[maybe_unused]] obase::guide<entry, obase::plain>& pointer = unmanaged.view();

    stop_here();
    return 0;
}
