// SPDX-License-Identifier: MIT
//
// refused: obase:struct-copy
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    int key;
};
void copy(struct node* to, const struct node* from) { *to = *from; }
int main(void) {
    struct node a = {0, 3}, b = {0, 4};
    copy(&a, &b);
    printf("%d\n", a.key);
}
