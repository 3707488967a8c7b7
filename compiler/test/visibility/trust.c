// SPDX-License-Identifier: MIT
// RUN: %obase-clang -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
#include "marks.h"
struct unknown;
struct box { void* any OBASE_GUIDED; struct unknown* hidden OBASE_GUIDED; };
int empty(const struct box* b) { return !b->any && !b->hidden; }
// CHECK-DAG: trust	box::any	objects of type void can be moved by their bytes
// CHECK-DAG: trust	box::hidden	objects of type struct unknown can be moved by their bytes
