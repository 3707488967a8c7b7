// SPDX-License-Identifier: MIT
// Who stores into marked fields gets managed memory, all others do not.
#include "item.h"
#include "memory.h"
#include <cstdint>
#include <cstdio>
#include <obase/arming.hpp>
#include <obase/atc.hpp>
#include <obase/runtime.hpp>
#ifdef ATC
using protocol = obase::atc;
#else
using protocol = obase::arming;
#endif
namespace util {
char* make_name(const char* text);
}
void rename(item* i) {
    my_free(i->text);
    i->text = util::make_name("a name");
}
char* util::make_name(const char* text) { return my_copy(text); }

int main() {
    item one{};
    item two{};
    item_set(&one, "first");
    item_reserve(&one, 100);
    rename(&two);
    char* other = other_memory("other");
    char* name = util::make_name("other");
    (void)obase::runtime::of<protocol>().collect_now(); // and counts
    const obase::statistics now = obase::runtime::of<protocol>().statistics();
    std::uint64_t live = 0;
    for (unsigned i = 0; i < now.heap_count; ++i) live += now.heaps[i].live_objects;
    std::printf("%u calls, %u managed objects\n", my_calls(), static_cast<unsigned>(live));
    my_free(other);
    my_free(name);
    return my_calls() == 5 && live == 3 ? 0 : 1;
}
