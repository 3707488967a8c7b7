// SPDX-License-Identifier: MIT
// Lists, and trees through the addresses of links.
#include <stdio.h>
#include <stdlib.h>
struct node {
    struct node *next, **owner;
    long value;
};
struct tree {
    struct tree *left, *right;
    long key;
};
static struct tree* root;
static void insert(long key) {
    struct tree** at = &root;
    while (*at != NULL) at = key < (*at)->key ? &(*at)->left : &(*at)->right;
    *at = calloc(1, sizeof **at);
    (*at)->key = key;
}
static long depth(const struct tree* t) {
    if (t == NULL) return 0;
    const long left = depth(t->left), right = depth(t->right);
    return 1 + (left > right ? left : right);
}
int main(void) {
    struct node* head = NULL;
    for (long i = 0; i < 100; ++i) {
        struct node* n = malloc(sizeof *n);
        *n = (struct node){head, &head, i};
        if (head != NULL) head->owner = &n->next;
        head = n;
    }
    for (struct node** at = &head; *at != NULL;) // remove the odd ones
        if ((*at)->value % 2 == 1) {
            struct node* gone = *at;
            *at = gone->next;
            free(gone);
        } else {
            at = &(*at)->next;
        }
    long sum = 0;
    for (struct node *n = head, *before = NULL; n != NULL; before = n, n = n->next)
        sum += n->value + (before != NULL ? before->value : 0);
    unsigned x = 1;
    for (int i = 0; i < 200; ++i) insert((x = x * 1103515245 + 12345) >> 16 & 1023);
    printf("%ld %ld\n", sum, depth(root)); //> 4900 13
}
