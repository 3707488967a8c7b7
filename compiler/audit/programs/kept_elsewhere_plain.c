/* SPDX-License-Identifier: MIT */
struct node {
    struct node* next;
    long key;
};
static struct node* kept;
void keep_it(void* p) { kept = p; }
long use_it(void) { return kept->key; }
