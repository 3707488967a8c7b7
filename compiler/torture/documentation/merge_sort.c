// SPDX-License-Identifier: MIT
//
// right: a list is sorted by merging; all of it happens in one operation.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = l->head;
    l->head = n;
}
static struct node* merge(struct node* a, struct node* b) {
    if (!a) return b;
    if (!b) return a;
    if (a->key <= b->key) {
        a->next = merge(a->next, b);
        return a;
    }
    b->next = merge(a, b->next);
    return b;
}
static struct node* sort(struct node* n) {
    if (!n || !n->next) return n;
    struct node* slow = n;
    for (struct node* fast = n->next; fast && fast->next; fast = fast->next->next)
        slow = slow->next;
    struct node* half = slow->next;
    slow->next = NULL;
    return merge(sort(n), sort(half));
}
void sort_all(struct list* l) { l->head = sort(l->head); }
void show(const struct list* l) {
    for (const struct node* n = l->head; n; n = n->next) printf("%d ", n->key);
    puts("");
}
int main(void) {
    for (int i = 0; i < 64; i++) push(&L, i * 29 % 64);
    settle();
    sort_all(&L);
    settle();
    show(&L);
}
