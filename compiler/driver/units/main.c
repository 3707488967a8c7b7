/* SPDX-License-Identifier: MIT
 *
 * Calls functions of list.c, and hands the list to what is linked, and to the libraries that are named, which are loaded.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct list;
extern struct list shared_list;
long first(void);
void fill_all(void);
long sum_all(void);

void settle(void); /* compiler/torture/settle.cpp */
extern void hand_on(struct list* l) __attribute__((weak));

static void load(const char* path) {
    void* const library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        puts(dlerror());
        exit(2);
    }
    ((void (*)(struct list*))dlsym(library, "hand_on"))(&shared_list);
}

int main(int count, char** paths) {
    fill_all();
    settle();
    if (hand_on != NULL) hand_on(&shared_list);
    for (int i = 1; i < count; ++i) load(paths[i]);
    settle();
    printf("%ld %ld\n", sum_all(), first());
}
