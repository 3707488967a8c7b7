/* SPDX-License-Identifier: MIT
 *
 * A red-black tree of many keys, of which one in ten is asked for, nearly always.
 *
 *     workload KEYS SECONDS      asks for so long, and says how fast and in how much memory
 *     workload KEYS - ASKED      asks for so many */
#include "workload.h"

#include <libHX/init.h>
#include <libHX/map.h>

/* Keys are numbers, and not in the order in which the nodes lie. */
static void* key_of(uint64_t number) { return (void*)(uintptr_t)(mixed(number + 1) >> 1 | 1); }

static uint64_t chosen(uint64_t keys, uint64_t random) {
    const uint64_t one = random >> 16;
    return random % 10000 == 0 ? mixed(one) % keys : mixed(one % (keys / 10 + 1)) % keys;
}

int main(int argc, char** argv) {
    if ((argc != 3 && argc != 4) || HX_init() <= 0) {
        fprintf(stderr, "workload KEYS SECONDS, or - ASKED\n");
        return 2;
    }
    const uint64_t keys = strtoull(argv[1], NULL, 10);
    const double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
    const uint64_t at_most = argc == 3 ? UINT64_MAX : strtoull(argv[3], NULL, 10);
    struct HXmap* const map = HXmap_init(HXMAPT_RBTREE, 0);
    for (uint64_t i = 0; i < keys; ++i)
        if (map == NULL || HXmap_add(map, key_of(i), (void*)(uintptr_t)(i + 1)) < 0) {
            fprintf(stderr, "workload: key %llu is not added\n", (unsigned long long)i);
            return 1;
        }
    const double begin = now();
    if (argc == 3) say_memory(0, 0);
    uint64_t asked = 0;
    double next = 1;
    for (double second = 0; asked < at_most && (argc == 4 || second < seconds); ++asked) {
        const uint64_t number = chosen(keys, mixed(asked + keys));
        if ((uintptr_t)HXmap_get(map, key_of(number)) != number + 1) {
            fprintf(stderr, "workload: key %llu is lost\n", (unsigned long long)number);
            return 1;
        }
        if (asked % 1000 != 0 || argc == 4) continue;
        second = now() - begin;
        if (second < next) continue;
        say_memory(second, asked);
        ++next;
    }
    HXmap_free(map);
    HX_exit();
    return 0;
}
