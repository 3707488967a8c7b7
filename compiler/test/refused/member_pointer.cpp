// SPDX-License-Identifier: MIT
// RUN: %refuse++
#include "marks.h"
struct tree { int key; tree* left OBASE_GUIDED; tree* right OBASE_GUIDED; };
tree* tree::* side(bool right) {
    // CHECK: error: a member pointer to the marked field 'tree::right' hides{{.*}}[obase:member-pointer]
    // CHECK: error: a member pointer to the marked field 'tree::left' hides{{.*}}[obase:member-pointer]
    return right ? &tree::right : &tree::left;
}
