/* SPDX-License-Identifier: MIT
 *
 * A queue whose last element is in two marked fields. What the audit does not move works on.
 *
 * STATUS: 1
 * EXPECT: error: two-fields
 * EXPECT: queue::tail, struct node *, declared at {folder}/head_and_tail.c
 * EXPECT: let out by: the operation at {folder}/head_and_tail.c:{any}
 * FORBID: stale-use
 * FORBID: freed-in-field
 */
#define NO_LIST
#include "list.h"

struct queue {
    struct node* head OBASE_GUIDED;
    struct node* tail OBASE_GUIDED;
};
static struct queue queue;

// A new object in two marked fields would be refused; what is found and stored again is not.
static struct node* last(struct queue* q) {
    struct node* n = q->head;
    while (n != NULL && n->next != NULL) n = n->next;
    return n;
}
void put(struct queue* q, long key) {
    struct node* n = malloc(sizeof *n);
    n->key = key;
    n->next = NULL;
    if (q->tail != NULL)
        q->tail->next = n;
    else
        q->head = n;
    q->tail = last(q);
}
long take(struct queue* q) {
    struct node* n = q->head;
    long key = n->key;
    q->head = n->next;
    if (q->head == NULL) q->tail = NULL;
    free(n);
    return key;
}

int main(void) {
    long s = 0;
    for (int round = 0; round < 3; ++round) {
        for (long i = 0; i < 20; ++i) put(&queue, i);
        for (int i = 0; i < 20; ++i) s += take(&queue);
    }
    printf("%ld\n", s);
}
