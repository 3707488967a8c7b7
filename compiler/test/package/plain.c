/* SPDX-License-Identifier: MIT
 *
 * Compiled without the plugins: the linking of the program names it. */
#include "cache.h"

#include <stdlib.h>

int fill_cache(struct cache* c) {
    free(malloc(10));
    return cache_put(c, -1, -1);
}
