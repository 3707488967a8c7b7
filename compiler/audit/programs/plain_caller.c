/* SPDX-License-Identifier: MIT
 *
 * A unit that was compiled without the passes only hands on what it gets, which is right; but nothing shows that.
 *
 * PLAIN: plain_caller_plain.c
 * LINK: plain_caller_plain.o was compiled without obase-clang and names 'push', 'sum'
 * STATUS: 0
 * EXPECT: note: plain-unit
 * EXPECT: at: {folder}/plain_caller_plain.c:{any} in hand_on
 * EXPECT: calls: push
 * FORBID: calls: sum
 */
#include "list.h"

struct list* only(void) {
    static struct list own;
    return &own;
}
void hand_on(struct list* l);
int main(void) {
    hand_on(only());
    printf("%ld\n", sum(only()));
    return 0;
}
