// SPDX-License-Identifier: MIT
//
// right: data lie behind the struct, in the same object.
#include "torture.h"
struct node {
    struct node* next OBASE_GUIDED;
    size_t length;
};
struct list {
    struct node* head OBASE_GUIDED;
};
static struct list L;
void push(struct list* l, const char* text) {
    size_t length = strlen(text);
    struct node* n = malloc(sizeof *n + length + 1);
    n->length = length;
    memcpy(n + 1, text, length + 1);
    n->next = l->head;
    l->head = n;
}
void print(const struct list* l) {
    for (const struct node* n = l->head; n; n = n->next)
        printf("%zu %s\n", n->length, (const char*)(n + 1));
}
int main(void) {
    const char* words[] = {"one", "twenty", "three hundred"};
    for (int i = 0; i < 3; i++) push(&L, words[i]);
    settle();
    print(&L);
}
