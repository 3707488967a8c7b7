// SPDX-License-Identifier: MIT
//
// right: an array of chains as a marked variable, a text, and a table that grows.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
static struct node* chain[8] OBASE_GUIDED;
static char* title OBASE_GUIDED;
static char** lines OBASE_GUIDED;
static int count;
void put(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = chain[key % 8];
    chain[key % 8] = n;
}
int sum(void) {
    int s = 0;
    for (int i = 0; i < 8; i++)
        for (const struct node* n = chain[i]; n; n = n->next) s += n->key;
    return s;
}
void set_title(const char* text) {
    free(title);
    title = strdup(text);
}
void add_line(const char* text) {
    lines = realloc(lines, (size_t)(count + 1) * sizeof *lines);
    lines[count++] = strdup(text);
}
void print(void) {
    puts(title);
    for (int i = 0; i < count; i++) puts(lines[i]);
}
int main(void) {
    for (int i = 0; i < 70; i++) put(i);
    set_title("a title");
    for (int i = 0; i < 6; i++) {
        add_line(i % 2 ? "a line" : "another line");
        settle();
    }
    set_title("a title that is longer");
    settle();
    printf("%d\n", sum());
    print();
}
