// SPDX-License-Identifier: MIT
//
// right: objects are cleared by memset and used again.
#include "torture.h"
struct slot {
    char* text OBASE_GUIDED;
    int uses;
};
struct pool {
    struct slot at[8];
};
static struct pool P;
void use(struct pool* p, int i) {
    p->at[i].text = malloc(16);
    snprintf(p->at[i].text, 16, "use %d", i);
    p->at[i].uses++;
}
void drop_all(struct pool* p) {
    for (int i = 0; i < 8; i++) free(p->at[i].text);
    memset(p, 0, sizeof *p);
}
int uses(const struct pool* p) {
    int n = 0;
    for (int i = 0; i < 8; i++)
        if (p->at[i].text && p->at[i].text[0] == 'u') n += p->at[i].uses;
    return n;
}
int main(void) {
    for (int r = 0; r < 10; r++) {
        for (int i = 0; i <= r % 8; i++) use(&P, i);
        settle();
        printf("%d", uses(&P));
        drop_all(&P);
        settle();
    }
    puts("");
}
