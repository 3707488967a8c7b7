// SPDX-License-Identifier: MIT
// A chain in C: slots are of a type of their own, variables that hold their addresses are as before.
// RUN: rm -rf %t && %rewrite --out=%t --root=%S %s -- -std=gnu11
// RUN: sed /CHECK/d %t/chain.c | %filecheck --match-full-lines %s
// RUN: %plain-clang -c %t/chain.c -o %t/chain.o
// RUN: %plain-gcc -c %t/chain.c -o %t/chain.o
#include <obase/marked.h>
#include <stdlib.h>
struct item {
    int key;
    char* text OBASE_GUIDED;
    struct item* next OBASE_GUIDED;
};
struct chain {
    struct item* first OBASE_GUIDED;
};
static struct item** find(struct chain* c, int key) {
    struct item** link = &c->first;
    while (*link && (*link)->key != key) link = &(*link)->next;
    return link;
}
int chain_put(struct chain* c, int key) {
    struct item* fresh = calloc(1, sizeof *fresh);
    if (!fresh || !(fresh->text = malloc(8))) return -1;
    fresh->key = key;
    fresh->next = c->first;
    c->first = fresh;
    return 0;
}
void chain_drop(struct chain* c, int key) {
    struct item** link = find(c, key);
    struct item* gone = *link;
    if (gone == NULL) return;
    *link = gone->next;
    free(gone->text);
    free(gone);
}
int chain_swap(struct chain* c, struct item* expected, struct item* desired) {
    return __atomic_compare_exchange_n(&c->first, &expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
int chain_first(struct chain* c) {
    struct chain own = {NULL};
    own.first = __atomic_exchange_n(&c->first, NULL, __ATOMIC_SEQ_CST);
    int key = own.first ? own.first->key : 0;
    __atomic_store_n(&c->first, own.first, __ATOMIC_RELEASE);
    return key;
}
_Static_assert(__LINE__ == 48, "lines have the numbers that they have in the source");
// CHECK:     OBASE_SLOT(char*) text;
// CHECK-NEXT:     OBASE_SLOT(struct item*) next;
// CHECK: static struct item** find(struct chain* c, int key) {
// CHECK-NEXT:     struct item** link = obase_slot_at(c->first);
// CHECK-NEXT:     while (!obase_slot_is_null_at(link) && obase_slot_load_at(link)->key != key) link = obase_slot_at(obase_slot_load_at(link)->next);
// CHECK-NEXT:     return link;
// CHECK: int chain_put(struct chain* c, int key) { OBASE_OPERATION;
// CHECK-NEXT:     struct item* fresh = obase_marked_calloc(1, sizeof *fresh);
// CHECK-NEXT:     if (!fresh || !(obase_slot_store(fresh->text, obase_marked_malloc(8)))) return -1;
// CHECK-NEXT:     fresh->key = key;
// CHECK-NEXT:     obase_slot_store(fresh->next, obase_slot_load(c->first));
// CHECK-NEXT:     obase_slot_store(c->first, fresh);
// CHECK: void chain_drop(struct chain* c, int key) { OBASE_OPERATION;
// CHECK-NEXT:     struct item** link = find(c, key);
// CHECK-NEXT:     struct item* gone = obase_slot_load_at(link);
// CHECK-NEXT:     if (gone == NULL) return;
// CHECK-NEXT:     obase_slot_store_at(link, obase_slot_load(gone->next));
// CHECK-NEXT:     obase_marked_free(obase_slot_load(gone->text));
// CHECK-NEXT:     obase_marked_free(gone);
// CHECK:     return obase_slot_compare_exchange(c->first, &expected, desired);
// CHECK:     struct chain own = {NULL}; OBASE_SLOTS_END(own);
// CHECK-NEXT:     obase_slot_store(own.first, obase_slot_exchange(c->first, NULL));
// CHECK-NEXT:     int key = !obase_slot_is_null(own.first) ? obase_slot_load(own.first)->key : 0;
// CHECK-NEXT:     (void)obase_slot_exchange(c->first, obase_slot_load(own.first));
