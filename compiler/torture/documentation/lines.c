// SPDX-License-Identifier: MIT
//
// right: a document of lines that are exchanged, replaced and removed.
#include "torture.h"
struct document {
    char* line[20] OBASE_GUIDED;
    int lines;
};
static struct document D;
void add(struct document* d, const char* text) {
    char* copy = malloc(strlen(text) + 1);
    strcpy(copy, text);
    d->line[d->lines++] = copy;
}
void exchange(struct document* d, int a, int b) {
    char* t = d->line[a];
    d->line[a] = d->line[b];
    d->line[b] = t;
}
void erase(struct document* d, int at) {
    free(d->line[at]);
    for (int i = at; i + 1 < d->lines; i++) d->line[i] = d->line[i + 1];
    d->line[--d->lines] = NULL;
}
void sort(struct document* d) {
    for (int i = 0; i < d->lines; i++)
        for (int j = i + 1; j < d->lines; j++)
            if (strcmp(d->line[i], d->line[j]) > 0) exchange(d, i, j);
}
int length(const struct document* d, int at) { return (int)strlen(d->line[at]); }
void print(const struct document* d) {
    for (int i = 0; i < d->lines; i++) printf("%d: %s\n", i, d->line[i]);
}
int main(void) {
    const char* words[] = {"pear", "apple", "fig", "quince", "cherry", "plum"};
    for (int i = 0; i < 6; i++) add(&D, words[i]);
    settle();
    exchange(&D, 0, 5);
    settle();
    erase(&D, 2);
    settle();
    print(&D);
    sort(&D);
    settle();
    print(&D);
    printf("%d\n", length(&D, 1));
}
