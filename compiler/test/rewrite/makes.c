// SPDX-License-Identifier: MIT
// REQUIRES: passes
// A program's own malloc gets a twin, as with the passes (visibility/makes.c): for those who store what
// it returns into marked fields, here and in other translation units.
// RUN: rm -rf %t && mkdir -p %t && cp -r %S/inputs/makes %t/source
// RUN: %rewrite --out=%t/out --root=%t/source --marks=%t/source/makes.marks %t/source/memory.c %t/source/item.c -- -std=gnu11
// RUN: %rewrite --out=%t/out --root=%t/source --marks=%t/source/makes.marks %t/source/main.cpp -- -std=c++20
// RUN: %filecheck --match-full-lines %s < %t/out/memory.c
// CHECK: #line 1 "memory.c"
// CHECK: void* my_malloc(size_t bytes) {
// CHECK-NEXT:     if (bytes > 100000) return NULL;
// CHECK-NEXT:     void* made = malloc(bytes);
// CHECK-NEXT:     calls += made != NULL;
// CHECK-NEXT:     return made;
// CHECK-NEXT: }
// CHECK-NEXT: #line 9
// CHECK-NEXT: OBASE_C_TWIN(my_malloc, "my_malloc.obase"); void* obase_managed_my_malloc(size_t bytes) {
// CHECK-NEXT:     if (bytes > 100000) return NULL;
// CHECK-NEXT:     void* made = obase_marked_malloc(bytes);
// CHECK-NEXT:     calls += made != NULL;
// CHECK-NEXT:     return made;
// CHECK-NEXT: }
// CHECK-NEXT: #line 14
// CHECK-EMPTY:
// CHECK-EMPTY:
// CHECK-NEXT: char* my_copy(const char* text) {
// CHECK-NEXT:     char* copy = my_malloc(strlen(text) + 1);
// CHECK: #line 16
// CHECK-NEXT: OBASE_C_TWIN(my_copy, "my_copy.obase"); char* obase_managed_my_copy(const char* text) {
// CHECK-NEXT:     char* copy = obase_managed_my_malloc(strlen(text) + 1);
// CHECK: #line 19
// CHECK: void my_free(void* memory) { obase_marked_free(memory); }
// CHECK: static char* own_copy(const char* text) { return my_copy(text); }
// CHECK-NEXT: #line 24
// CHECK-NEXT: OBASE_STATIC_TWIN(own_copy); static char* obase_managed_own_copy(const char* text) { return obase_managed_my_copy(text); }
// RUN: %filecheck --check-prefix=HEADER --match-full-lines %s < %t/out/memory.h
// HEADER: void* my_malloc(size_t bytes) __attribute__((malloc)); OBASE_C_TWIN(my_malloc, "my_malloc.obase");
// HEADER: char* my_copy(const char* text); OBASE_C_TWIN(my_copy, "my_copy.obase");
// RUN: %filecheck --check-prefix=ITEM --match-full-lines %s < %t/out/item.c
// ITEM: void item_set(struct item* i, const char* text) { OBASE_OPERATION;
// ITEM: obase_slot_store(i->text, obase_managed_my_copy(text));
// ITEM: obase_slot_store(i->spare, obase_managed_my_malloc(bytes));
// ITEM: char* other_memory(const char* text) { return my_copy(text); }

// They are of the same names as the twins of the passes: either may call the other's.
// RUN: %plain-gcc -I %t/out -c %t/out/memory.c -o %t/memory.o
// RUN: %plain-clang -I %t/out -c %t/out/item.c -o %t/item.o
// RUN: %plain-gcc++ -I %t/out -c %t/out/main.cpp -o %t/main.o
// RUN: %plain-gcc++ %t/memory.o %t/item.o %t/main.o %library -o %t/program && %t/program
// RUN: %obase-clang --obase-marks=%t/source/makes.marks -c %t/source/memory.c -o %t/passes.o
// RUN: %plain-gcc++ %t/passes.o %t/item.o %t/main.o %library -o %t/mixed && %t/mixed

// With both protocols, and for those who keep the result.
// RUN: %rewrite --protocol=atc --no-lines --out=%t/kept --root=%t/source --marks=%t/source/makes.marks %t/source/memory.c %t/source/item.c -- -std=gnu11 -DATC
// RUN: %rewrite --protocol=atc --no-lines --out=%t/kept --root=%t/source --marks=%t/source/makes.marks %t/source/main.cpp -- -std=c++20 -DATC
// RUN: not grep -r '#line' %t/kept
// RUN: %filecheck --check-prefix=KEPT --match-full-lines %s < %t/kept/memory.c
// KEPT: OBASE_C_TWIN(my_malloc, "my_malloc.obase");
// KEPT-NEXT: void* obase_managed_my_malloc(size_t bytes) {
// KEPT: void* made = obase_marked_atc_malloc(bytes);
// RUN: %plain-gcc -DATC -I %t/kept -c %t/kept/memory.c -o %t/memory.o
// RUN: %plain-clang -I %t/kept -c %t/kept/item.c -o %t/item.o
// RUN: %plain-clang++ -DATC -I %t/kept -c %t/kept/main.cpp -o %t/main.o
// RUN: %plain-gcc++ %t/memory.o %t/item.o %t/main.o %library -o %t/atc && %t/atc

// A maker of which no twin can be written is refused.
// RUN: not %rewrite --out=%t/none --root=%t/source --marks=%t/source/refused.marks %t/source/refused.cpp -- -std=c++20 -fno-caret-diagnostics 2>&1 | %filecheck %t/source/refused.cpp
// RUN: not %rewrite --out=%t/none --root=%t/source --marks=%t/source/refused.marks %t/source/inline.c -- -std=gnu11 -fno-caret-diagnostics 2>&1 | %filecheck %t/source/inline.c
// RUN: not ls %t/none
