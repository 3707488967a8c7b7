// SPDX-License-Identifier: MIT
//
// encoded: says that nothing sees it, and is refused.
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
struct node* first(void) { return all.head; }
int main(void) {
    for (int key = 0; key < 30; ++key) push(key);
    settle();
    printf("%d\n", sum());
}
