// SPDX-License-Identifier: MIT
//
// audit: two-fields: two structs share a text.
#include "torture.h"
struct item {
    char* text OBASE_GUIDED;
};
static struct item A[20], B[20];
void set(struct item* i, int n) {
    i->text = malloc(20);
    sprintf(i->text, "text %d", n);
}
void share(struct item* to, const struct item* from) { to->text = from->text; }
int same(const struct item* a, const struct item* b) { return strcmp(a->text, b->text) == 0; }
int main(void) {
    for (int i = 0; i < 20; i++) {
        set(&A[i], i);
        share(&B[i], &A[i]);
    }
    settle();
    int n = 0;
    for (int i = 0; i < 20; i++) n += same(&A[i], &B[i]);
    printf("%d\n", n);
}
