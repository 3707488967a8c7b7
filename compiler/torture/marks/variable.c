// SPDX-License-Identifier: MIT
//
// right: a marked variable of the file.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
static struct node* head OBASE_GUIDED;
void push(int key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = head;
    head = n;
}
int pop(void) {
    struct node* n = head;
    if (!n) return -1;
    int key = n->key;
    head = n->next;
    free(n);
    return key;
}
int has(int key) {
    for (struct node* n = head; n; n = n->next)
        if (n->key == key) return 1;
    return 0;
}
void erase(int key) {
    for (struct node** at = &head; *at; at = &(*at)->next)
        if ((*at)->key == key) {
            struct node* n = *at;
            *at = n->next;
            free(n);
            return;
        }
}
int main(void) {
    for (int i = 0; i < 80; i++) push(i);
    settle();
    for (int i = 0; i < 80; i += 3) erase(i);
    settle();
    int s = 0;
    for (int i = 0; i < 80; i++) s += has(i);
    for (int i; (i = pop()) >= 0;) s = s * 3 % 10007 + i;
    printf("%d\n", s);
}
