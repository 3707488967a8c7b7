// SPDX-License-Identifier: MIT
//
// refused: obase:marks-file
// marks: misspelt.marks
#include "torture.h"
struct node {
    struct node* next;
};
int main(void) { puts(""); }
