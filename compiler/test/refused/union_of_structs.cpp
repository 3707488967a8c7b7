// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct node { int key; };
struct inner { node* head OBASE_GUIDED; };
struct leaf { int keys[2]; };
// CHECK: error: a union holds the marked field 'inner::head'{{.*}}[obase:union]
union page { inner i; leaf l; };
int first(const page& p) { return p.l.keys[0]; }
