/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>

char* make_key(int number) {
    char* key = malloc(16);
    if (key != NULL) snprintf(key, 16, "key %d", number);
    return key;
}
