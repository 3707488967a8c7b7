/* SPDX-License-Identifier: MIT
 *
 * A list that is right, with functions and a variable that others see: of what is linked, and of the libraries that are
 * named, which are loaded.
 */
#include "list.h"

#include <dlfcn.h>

struct list shared_list;
long first(void) { return shared_list.head == NULL ? 0 : shared_list.head->key; }

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
    fill();
    settle();
    if (hand_on != NULL) hand_on(&shared_list);
    for (int i = 1; i < count; ++i) load(paths[i]);
    settle();
    printf("%ld %ld\n", sum(&all), first());
}
