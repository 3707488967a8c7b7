/* SPDX-License-Identifier: MIT
 *
 * A red-black tree of many keys, of which one in ten is asked for, nearly always: KEYS, as workload.h says. */
#include "workload.h"

#include <libHX/init.h>
#include <libHX/map.h>

/* Keys are numbers, and not in the order in which the nodes lie. */
static void* key_of(uint64_t number) { return (void*)(uintptr_t)(mixed(number + 1) >> 1 | 1); }

int main(int argc, char** argv) {
    struct pace pace = pace_of(argc, argv, "KEYS");
    if (HX_init() <= 0) give_up("libHX does not begin");
    struct HXmap* const map = HXmap_init(HXMAPT_RBTREE, 0);
    for (uint64_t number = 0; number < pace.count; ++number)
        if (map == NULL || HXmap_add(map, key_of(number), (void*)(uintptr_t)(number + 1)) < 0)
            give_up("key %llu is not added", (unsigned long long)number);
    begin(&pace);
    for (uint64_t call; next_call(&pace, &call);) {
        const uint64_t number = asked_for(&pace, call);
        if ((uintptr_t)HXmap_get(map, key_of(number)) != number + 1)
            give_up("key %llu is lost", (unsigned long long)number);
    }
    HXmap_free(map);
    HX_exit();
    return 0;
}
