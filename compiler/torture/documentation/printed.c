// SPDX-License-Identifier: MIT
//
// right: what a field holds is handed to functions of the library that do not keep it.
#include "torture.h"
struct person {
    char* name OBASE_GUIDED;
    int age;
};
static struct person P[10];
void set(struct person* p, const char* name, int age) {
    free(p->name);
    p->name = malloc(strlen(name) + 1);
    strcpy(p->name, name);
    p->age = age;
}
void show(const struct person* p) { printf("%s is %d\n", p->name, p->age); }
int same(const struct person* p, const char* name) { return strcmp(p->name, name) == 0; }
size_t written(const struct person* p, char* out) {
    return (size_t)sprintf(out, "%s/%d", p->name, p->age);
}
void line(const struct person* p) { puts(p->name); }
int main(void) {
    char name[20], out[40];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "person %d", i);
        set(&P[i], name, 20 + i);
    }
    settle();
    for (int i = 0; i < 10; i++) show(&P[i]);
    set(&P[3], "somebody else", 3);
    settle();
    printf("%d %zu\n", same(&P[4], "person 4"), written(&P[3], out));
    puts(out);
    line(&P[3]);
}
