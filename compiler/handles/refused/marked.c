// SPDX-License-Identifier: MIT
// refused: a marked field
#include <obase/marked.h>
struct node {
    struct node* next OBASE_GUIDED;
};
struct node* next_of(struct node* n) { return n->next; }
struct node* fourth(struct node* n) { return n->next->next->next; } // told once
int main(void) { return 0; }
