// SPDX-License-Identifier: MIT
// RUN: %refuse
// The other way round, through void, and with the field in a member and in an array.
#include "marks.h"
struct node { int key; };
struct pair { struct node* one OBASE_GUIDED; struct node* two OBASE_GUIDED; };
struct table { int used; struct pair pairs[2]; };
struct plain { int used; void* words[4]; };
int first(struct plain* p) {
    // CHECK: error: 'struct plain' is looked at as 'struct table'
    return ((struct table*)(void*)p)->pairs[1].two->key;
}
