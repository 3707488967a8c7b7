/* SPDX-License-Identifier: MIT
 *
 * What is stored into the mark is made by a function that nothing is known of: right, and nothing moves.
 *
 * PLAIN: unreached_plain.c
 * LINK: no object in the marked field 'item::key' is managed, so none will move: what 'make_key' returns is not
 * STATUS: 0
 * EXPECT: 0 errors, 0 suspected, 0 known; 0 objects moved
 */
#define NO_LIST
#include "list.h"

char* make_key(int number);

struct item {
    char* key OBASE_GUIDED;
};
static struct item items[20];

void set(struct item* i, int number) { i->key = make_key(number); }
size_t length(struct item* i) { return strlen(i->key); }

int main(void) {
    size_t all = 0;
    for (int i = 0; i < 20; ++i) set(&items[i], i);
    for (int i = 0; i < 20; ++i) all += length(&items[i]);
    printf("%zu\n", all);
}
