// SPDX-License-Identifier: MIT
// List, tree, hash table, array, and malloc with free, as docs/handles.md measures them: walks REPETITIONS LETTERS (l b h a m)
// [NODES]. Prints the time of each part, and a sum that depends on all that was read.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
struct node {
    struct node* next;
    long v;
};
static struct node* volatile escaped;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}
struct tree {
    long key;
    struct tree *l, *r;
};
__attribute__((noinline)) static long walk(struct node* n) {
    long s = 0;
    for (; n; n = n->next) s += n->v;
    return s;
}
__attribute__((noinline)) static struct tree* find(struct tree* t, long k) {
    while (t && t->key != k) t = k < t->key ? t->l : t->r;
    return t;
}
__attribute__((noinline)) static void insert(struct tree** t, long k) {
    while (*t) {
        if ((*t)->key == k) return;
        t = k < (*t)->key ? &(*t)->l : &(*t)->r;
    }
    *t = malloc(sizeof **t);
    (*t)->key = k;
    (*t)->l = (*t)->r = NULL;
}
struct entry {
    struct entry* next;
    char* key;
    long v;
};
__attribute__((noinline)) static struct entry* get(struct entry** tab, size_t n, const char* k) {
    unsigned long h = 5381;
    for (const char* c = k; *c; ++c) h = h * 33 + (unsigned char)*c;
    struct entry* e = tab[h % n];
    while (e && strcmp(e->key, k)) e = e->next;
    if (!e) {
        e = malloc(sizeof *e);
        e->key = strdup(k);
        e->v = 0;
        e->next = tab[h % n];
        tab[h % n] = e;
    }
    return e;
}
__attribute__((noinline)) static long arr(long* a, long n) {
    long s = 0;
    for (long i = 0; i < n; ++i) s += a[i] * 3 ^ i;
    return s;
}
int main(int argc, char** argv) {
    long n = argc > 3 ? atol(argv[3]) : 20000, rep = argc > 1 ? atol(argv[1]) : 300;
    const char* which = argc > 2 ? argv[2] : "lbham";
    struct node** all = malloc(n * sizeof *all);
    unsigned long x = 1;
    for (long i = 0; i < n; ++i) {
        all[i] = malloc(sizeof **all);
        all[i]->v = i;
    }
    for (long i = n - 1; i > 0; --i) {
        x = x * 6364136223846793005UL + 1;
        long j = (x >> 33) % i;
        struct node* t = all[i];
        all[i] = all[j];
        all[j] = t;
    }
    for (long i = 0; i < n; ++i) all[i]->next = i + 1 < n ? all[i + 1] : NULL;
    long s = 0;
    double t0 = now();
    if (strchr(which, 'l')) {
        for (long r = 0; r < rep; ++r) {
            s += walk(all[0]);
            __asm__ volatile("" ::: "memory");
        }
        printf("list %.4f\n", now() - t0);
    }
    t0 = now();
    struct tree* root = NULL;
    if (strchr(which, 'b')) {
        for (long i = 0; i < n; ++i) {
            x = x * 6364136223846793005UL + 1;
            insert(&root, (x >> 33) % (4 * n));
        }
        t0 = now();
        for (long r = 0; r < rep / 10; ++r)
            for (long k = 0; k < n; ++k) {
                x = x * 6364136223846793005UL + 1;
                __asm__ volatile("" ::: "memory");
                s += find(root, (x >> 33) % (4 * n)) != NULL;
            }
        printf("bst %.4f\n", now() - t0);
    }
    t0 = now();
    struct entry** tab = calloc(4096, sizeof *tab);
    char k[32];
    if (strchr(which, 'h')) {
        for (long r = 0; r < rep / 10; ++r)
            for (long i = 0; i < n / 2; ++i) {
                sprintf(k, "key%ld", i * 7 % 9001);
                s += get(tab, 4096, k)->v++;
            }
        printf("hash %.4f\n", now() - t0);
    }
    t0 = now();
    long* a = malloc(n * sizeof *a);
    for (long i = 0; i < n; ++i) a[i] = i;
    if (strchr(which, 'a')) {
        for (long r = 0; r < rep * 5; ++r) {
            s += arr(a, n);
            __asm__ volatile("" ::: "memory");
        }
        printf("array %.4f\n", now() - t0);
    }
    t0 = now();
    if (strchr(which, 'm')) {
        for (long r = 0; r < rep; ++r)
            for (long i = 0; i < n; ++i) {
                struct node* p = malloc(16 + i % 8 * 16);
                p->v = i;
                escaped = p; /* or the compiler knows that nobody needs it */
                s += escaped->v;
                free(p);
            }
        printf("pairs %.4f\n", now() - t0);
    }
    printf("sum %ld\n", s);
    return 0;
}
