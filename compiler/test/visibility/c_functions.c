// SPDX-License-Identifier: MIT
// RUN: %obase-clang -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
// C: linkage instead of access.
#include "marks.h"
#include <stdlib.h>
struct node { int key; struct node* next OBASE_GUIDED; };
struct list { struct node* head OBASE_GUIDED; };
struct server { struct list* items; };
static struct node* find(const struct list* l, int key) {
    struct node* n = l->head;
    while (n && n->key != key) n = n->next;
    return n;
}
static void push(struct list* l, int key) {
    struct node* n = calloc(1, sizeof *n);
    if (!n) return;
    n->key = key;
    n->next = l->head;
    l->head = n;
}
int list_has(const struct list* l, int key) { return find(l, key) != 0; }
int server_run(struct server* s) {
    push(s->items, 1);
    return list_has(s->items, 1);
}
// CHECK-NOT: server_run
// CHECK-DAG: internal	find(const struct list *, int)	find	{{.*}}	names the marked field 'list::head'
// CHECK-DAG: entry	push(struct list *, int)	push	{{.*}}	called outside of any operation
// CHECK-DAG: entry	list_has(const struct list *, int)	list_has
// CHECK-NOT: server_run
