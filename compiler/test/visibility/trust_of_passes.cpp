// SPDX-License-Identifier: MIT
// REQUIRES: passes
// RUN: rm -rf %t && mkdir -p %t/out
// RUN: %obase-clang++ -c -O0 --obase-trust=%t/one -o %t/o %s
// RUN: %filecheck --match-full-lines --input-file=%t/one %s
// RUN: %obase-clang++ -c -O2 --obase-trust=%t/out -o %t/o %s
// RUN: cat %t/out/trust_of_passes.cpp.*.trust | %filecheck --match-full-lines %s
// RUN: not %obase-clang++ -c --obase-trust=%t/none/file -o %t/o %s 2>&1 | %filecheck --check-prefix=WRONG %s
// Code that is compiled elsewhere, or called through a pointer, is trusted. Not listed: what gets no
// address of an object, what is compiled here, and what allocates or frees.
#include "marks.h"
struct node { int key; char* text OBASE_GUIDED; };
struct list { node* head OBASE_GUIDED; void (*seen)(const node*); };
struct place { const node* at; };
void observe(const node* n);
void observe_place(const place* p);
extern "C" unsigned long strlen(const char*);
void count(int key);
static int here(const node* n) { return n->key; }
void each(list* l) {
    observe(l->head);
    place p{l->head};
    observe_place(&p);
    l->seen(l->head);
    count(here(l->head));
}
unsigned long length(const list* l) { return strlen(l->head->text); }
void drop(list* l) {
    delete l->head;
    l->head = nullptr;
}
// WRONG: error: obase: the trust file cannot be written: {{.*}}none/file: {{.*}}
// CHECK: # obase trust, format 1
// CHECK-NEXT: unit	{{.*}}trust_of_passes.cpp
// CHECK-NEXT: call	observe(node const*)	{{.*}}trust_of_passes.cpp:21:5	each(list*)	argument 1
// CHECK-NEXT: call	observe_place(place const*)	{{.*}}trust_of_passes.cpp:23:5	each(list*)	argument 1, a variable that holds an address
// CHECK-NEXT: call	strlen	{{.*}}trust_of_passes.cpp:27:46	length(list const*)	argument 1
// CHECK-NEXT: pointer	-	{{.*}}trust_of_passes.cpp:24:5	each(list*)	argument 1
// CHECK-NOT: {{.+}}
