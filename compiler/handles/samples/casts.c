// SPDX-License-Identifier: MIT
// Addresses as numbers: low bits, hashes, exclusive or, comparison, unions, bytes of an address.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
union value {
    void* address;
    uint64_t bits;
    double number;
};
struct node {
    uintptr_t both;
    int value;
};
int main(void) {
    long* a = malloc(sizeof *a);
    long* b = malloc(sizeof *b);
    *a = 10;
    *b = 20;
    const uintptr_t tagged = (uintptr_t)a | 5;
    const long by_tag = *(long*)(tagged & ~(uintptr_t)7);
    union value v = {.address = b};
    v.bits ^= 0xFFFF000000000000;
    v.bits ^= 0xFFFF000000000000;
    const long by_union = *(long*)v.address;
    void* copies[2];
    memcpy(copies, &(void*[]){a, b}, sizeof copies);
    unsigned char bytes[sizeof a];
    memcpy(bytes, &a, sizeof a);
    long* again = NULL;
    for (unsigned i = sizeof a; i-- > 0;) again = (long*)((uintptr_t)again << 8 | bytes[i]);
    printf("%ld %ld %ld %ld %d\n", by_tag, by_union, *(long*)copies[1], *again,
           a == again); //> 10 20 20 10 1
    // A list whose links are both neighbours at once.
    struct node* nodes[5];
    for (int i = 0; i < 5; ++i) nodes[i] = malloc(sizeof **nodes);
    for (int i = 0; i < 5; ++i) {
        const uintptr_t before = i > 0 ? (uintptr_t)nodes[i - 1] : 0;
        const uintptr_t after = i < 4 ? (uintptr_t)nodes[i + 1] : 0;
        *nodes[i] = (struct node){before ^ after, i + 1};
    }
    int sum = 0;
    uintptr_t before = 0;
    for (struct node* n = nodes[0]; n != NULL;) {
        sum = sum * 10 + n->value;
        struct node* next = (struct node*)(n->both ^ before);
        before = (uintptr_t)n;
        n = next;
    }
    printf("%d\n", sum); //> 12345
}
