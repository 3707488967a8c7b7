// SPDX-License-Identifier: MIT
// Variable arguments: addresses among them, a list in the heap, a variadic function by its address; what a variadic function
// hands to foreign code comes home, whoever of the program calls it.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
struct state {
    va_list list;
    int count;
};
static long sum(struct state* s) {
    long all = 0;
    for (int i = 0; i < s->count; ++i) all += *va_arg(s->list, long*);
    return all;
}
__attribute__((noinline)) static long add(int count, ...) {
    struct state* s = malloc(sizeof *s);
    s->count = count;
    va_start(s->list, count);
    const long all = sum(s);
    va_end(s->list);
    free(s);
    return all;
}
static long (*volatile by_address)(int, ...) = add;
static char* text(const char* format, ...) {
    va_list list, again;
    va_start(list, format);
    va_copy(again, list);
    const int length = vsnprintf(NULL, 0, format, list);
    char* made = malloc((size_t)length + 1);
    vsnprintf(made, (size_t)length + 1, format, again);
    va_end(list);
    va_end(again);
    return made;
}
static ssize_t (*volatile writes)(int, const void*, size_t) = write;
__attribute__((noinline)) static void hand_on(char* bytes, int out) {
    if (writes(out, bytes, strlen(bytes)) < 0) puts("the system cannot read it");
}
__attribute__((noinline)) void say(int out, ...) {
    va_list list;
    va_start(list, out);
    for (char* next; (next = va_arg(list, char*)) != NULL;) hand_on(next, out);
    va_end(list);
}
static void (*volatile say_by_address)(int, ...) = say;
int main(void) {
    long* numbers[9];
    for (int i = 0; i < 9; ++i) *(numbers[i] = malloc(sizeof(long))) = i;
    printf("%ld %ld\n",
           add(9, numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5],
               numbers[6], numbers[7], numbers[8]),
           by_address(2, numbers[7], numbers[8])); //> 36 15
    char* word = strdup("word");
    char* made = text("%s %d %g %s %c %Lf %lu %s", word, 1, 2.5, made = strdup("more"), 'c', 1.25L,
                      99ul, word);
    printf("%s\n", made); //> word 1 2.5 more c 1.250000 99 word
    fflush(stdout);
    say(1, strdup("said "), strdup("so\n"), NULL);              //> said so
    say_by_address(1, strdup("and "), strdup("again\n"), NULL); //> and again
}
