// SPDX-License-Identifier: MIT
#include "item.h"
#include "memory.h"

void item_set(struct item* i, const char* text) {
    my_free(i->text);
    i->text = my_copy(text);
}
void item_reserve(struct item* i, size_t bytes) {
    my_free(i->spare);
    i->spare = my_malloc(bytes);
}
char* other_memory(const char* text) { return my_copy(text); }
