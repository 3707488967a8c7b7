/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
struct list;
static jmp_buf behind;
void fail(int when) {
    if (when) longjmp(behind, 1);
}
int tried(void (*f)(struct list*, struct list*), struct list* a, struct list* b) {
    if (setjmp(behind) != 0) return 1;
    f(a, b);
    return 0;
}
