// SPDX-License-Identifier: MIT
//
// audit: stale-use: the error is another one, two-fields.
#include "torture.h"

struct node {
    int key;
    struct node* next OBASE_GUIDED;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list all;

void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = all.head;
    all.head = n;
}
int sum(void) {
    int keys = 0;
    for (const struct node* n = all.head; n != NULL; n = n->next) keys += n->key;
    return keys;
}
struct other {
    struct node* head OBASE_GUIDED;
};
static struct other other;
static struct node* last(void) {
    struct node* n = all.head;
    while (n != NULL && n->next != NULL) n = n->next;
    return n;
}
void share(void) { other.head = last(); }
int main(void) {
    for (int key = 0; key < 30; ++key) push(key);
    settle();
    share();
    printf("%d\n", sum());
}
