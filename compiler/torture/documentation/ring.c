// SPDX-License-Identifier: MIT
//
// right: a queue in a ring of marked pointers; places are indices.
#include "torture.h"
struct message {
    int number;
    char text[28];
};
struct ring {
    struct message* at[16] OBASE_GUIDED;
    unsigned first, count;
};
static struct ring R;
int put(struct ring* r, int number) {
    if (r->count == 16) return 0;
    struct message* m = malloc(sizeof *m);
    m->number = number;
    snprintf(m->text, sizeof m->text, "message %d", number);
    r->at[(r->first + r->count++) % 16] = m;
    return 1;
}
int take(struct ring* r, char* out) {
    if (r->count == 0) return 0;
    struct message* m = r->at[r->first];
    r->at[r->first] = NULL;
    strcpy(out, m->text);
    free(m);
    r->first = (r->first + 1) % 16;
    r->count--;
    return 1;
}
int main(void) {
    char text[28];
    for (int i = 0; i < 40; i++) {
        while (!put(&R, i)) {
            settle();
            if (take(&R, text)) puts(text);
        }
    }
    settle();
    while (take(&R, text)) puts(text);
}
