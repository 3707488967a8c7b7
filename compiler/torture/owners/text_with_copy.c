// SPDX-License-Identifier: MIT
//
// right: each struct has a copy.
#include "torture.h"
struct item {
    char* text OBASE_GUIDED;
};
static struct item A[20], B[20];
void set(struct item* i, int n) {
    i->text = malloc(20);
    sprintf(i->text, "text %d", n);
}
void copy(struct item* to, const struct item* from) {
    free(to->text);
    to->text = strdup(from->text);
}
void take(struct item* to, struct item* from) {
    free(to->text);
    to->text = from->text;
    from->text = NULL;
}
int same(const struct item* a, const struct item* b) {
    return a->text && b->text && strcmp(a->text, b->text) == 0;
}
int main(void) {
    for (int i = 0; i < 20; i++) {
        set(&A[i], i);
        copy(&B[i], &A[i]);
    }
    settle();
    int n = 0;
    for (int i = 0; i < 20; i++) n += same(&A[i], &B[i]);
    for (int i = 0; i < 19; i++) take(&A[i], &A[i + 1]);
    settle();
    for (int i = 0; i < 19; i++) n = n * 3 % 1009 + same(&A[i], &B[i + 1]);
    printf("%d\n", n);
}
