// SPDX-License-Identifier: MIT
//
// audit: freed-in-field or stale-use: an operation leaves what it has freed in a marked field, and another one reads it.
#include "torture.h"
struct box {
    char* text OBASE_GUIDED;
};
static struct box B[20], C[20];
void set(struct box* b, int i) {
    b->text = malloc(32);
    snprintf(b->text, 32, "text %d", i);
}
void drop(struct box* b) { free(b->text); }
int first(const struct box* b) { return b->text ? b->text[0] : 0; }
int main(void) {
    for (int i = 0; i < 20; i++) set(&B[i], i);
    settle();
    for (int i = 0; i < 20; i++) drop(&B[i]);
    for (int i = 0; i < 20; i++) set(&C[i], i);
    settle();
    int s = 0;
    for (int i = 0; i < 20; i++) s += first(&B[i]) != 0;
    printf("%d\n", s >= 0);
}
