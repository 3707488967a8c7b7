// SPDX-License-Identifier: MIT
//
// right: an operation copies what the caller needs into the caller's memory.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
    char name[24];
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    snprintf(n->name, sizeof n->name, "node %d", key);
    n->next = l->head;
    l->head = n;
}
static struct node* find(struct list* l, int key) {
    struct node* n = l->head;
    while (n && n->key != key) n = n->next;
    return n;
}
int name_of(struct list* l, int key, char name[24]) {
    struct node* n = find(l, key);
    if (!n) return 0;
    memcpy(name, n->name, sizeof n->name);
    return 1;
}
int rename_node(struct list* l, int key, const char* name) {
    struct node* n = find(l, key);
    if (n) snprintf(n->name, sizeof n->name, "%s", name);
    return n != NULL;
}
int main(void) {
    char name[24];
    for (int i = 0; i < 30; i++) push(&L, i);
    settle();
    printf("%d\n", rename_node(&L, 7, "seven"));
    settle();
    for (int i = 5; i < 9; i++)
        if (name_of(&L, i, name)) puts(name);
}
