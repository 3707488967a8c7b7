// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
void fill(node*& where);
// CHECK: error: the slot 'list::head' is given to 'fill', whose body is not here [obase:slot-escape]
void load(list& l) { fill(l.head); }
