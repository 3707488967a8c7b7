// SPDX-License-Identifier: MIT
//
// right: all tokens are taken within one operation.
#include "torture.h"
struct doc {
    char* text OBASE_GUIDED;
};
static struct doc D[10];
void load(struct doc* d, int n) {
    d->text = malloc(64);
    snprintf(d->text, 64, "%d one two three", n);
}
size_t letters(struct doc* d) {
    char* rest = NULL;
    size_t n = 0;
    for (char* word = strtok_r(d->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        n += strlen(word);
    return n;
}
int main(void) {
    for (int i = 0; i < 10; i++) load(&D[i], i);
    settle();
    for (int i = 0; i < 10; i++) printf("%zu ", letters(&D[i]));
    puts("");
}
