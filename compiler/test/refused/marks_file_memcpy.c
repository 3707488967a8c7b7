// SPDX-License-Identifier: MIT
// RUN: rm -rf %t && mkdir %t && echo "node::next" > %t/marks
// RUN: not %obase-clang --obase-marks=%t/marks -c %s -o %t/o 2>&1 | %filecheck %s
// A mark from outside is as good as one in the source.
#include <string.h>
struct node { int key; struct node* next; };
void copy(struct node* to, const struct node* from) {
    // CHECK: error: 'memcpy' copies the bytes of the marked field 'node::next' [obase:bytes]
    memcpy(to, from, sizeof *to);
}
