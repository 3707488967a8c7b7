/* SPDX-License-Identifier: MIT
 *
 * A helper jumps out of an operation. What comes after moves as before.
 *
 * STATUS: 0
 * EXPECT: note: left-by-longjmp
 * EXPECT: at: {folder}/jump.c:{any} in attempt
 * EXPECT: 0 errors
 * MOVED: 200
 */
#include "list.h"

#include <setjmp.h>

static jmp_buf back;
static void fail(void) { longjmp(back, 1); }

long checked(struct list* l, long bad) {
    long s = 0;
    for (struct node* n = l->head; n != NULL; n = n->next) {
        if (n->key == bad) fail();
        s += n->key;
    }
    return s;
}
static long attempt(long bad) {
    if (setjmp(back) != 0) return -1;
    return checked(&all, bad);
}

int main(void) {
    printf("%ld\n", attempt(7));
    fill();
    printf("%ld\n", attempt(7));
    for (int i = 0; i < 5; ++i) printf("%ld\n", attempt(-5));
}
