/* SPDX-License-Identifier: MIT
 *
 * What the programs of misjudged/ have in common: a list that is right. NODE(key) makes a node.
 */
#pragma once
#include "torture.h"

struct node {
    int key;
    struct node* next OBASE_GUIDED;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list all;

#ifndef NODE
#define NODE(key) malloc(sizeof(struct node))
#endif

void push(int key) {
    struct node* n = NODE(key);
    n->key = key;
    n->next = all.head;
    all.head = n;
}
int sum(void) {
    int keys = 0;
    for (const struct node* n = all.head; n != NULL; n = n->next) keys += n->key;
    return keys;
}
void push_all(void) {
    for (int key = 0; key < 30; ++key) push(key);
}
