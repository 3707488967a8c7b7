// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct tree { int key; tree* left OBASE_GUIDED; };
// CHECK: error: a member pointer to the marked field 'tree::left' hides{{.*}}[obase:member-pointer]
template <tree* tree::*Side> bool none(const tree& t) { return t.*Side == nullptr; }
// CHECK: error: a member pointer to the marked field 'tree::left' hides{{.*}}[obase:member-pointer]
bool leaf(const tree& t) { return none<&tree::left>(t); }
