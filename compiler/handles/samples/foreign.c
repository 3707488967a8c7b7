// SPDX-License-Identifier: MIT
// foreign: foreign_part.c
// Code that is not instrumented: it keeps addresses, calls back, returns what it kept, allocates and frees.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct entry {
    char* text;
    struct entry* next;
};
void keep_entry(struct entry*);
struct entry* kept_entry(void);
int count_letters(const char*, int (*is)(int, void*), void*);
char* foreign_copy(const char*);
int foreign_sum(int count, ...);
void foreign_free(void*);
long foreign_write(const char*, long);
void* foreign_apply(void* (*)(void*), void*);
static int is_vowel(int c, void* state) {
    const int yes = strchr("aeiou", c) != NULL;
    *(int*)state += yes;
    return yes;
}
static void* twice(void* number) {
    int* made = malloc(sizeof *made);
    *made = *(int*)number * 2;
    return made;
}
int main(void) {
    struct entry* e = malloc(sizeof *e);
    e->text = strdup("kept text");
    e->next = NULL;
    keep_entry(e);
    for (int i = 0; i < 20; ++i) free(malloc(32));
    e->text[0] = 'K';
    struct entry* again = kept_entry();
    int* state = calloc(1, sizeof *state);
    const int vowels = count_letters(again->text, is_vowel, state);
    printf("%d %s %d %d\n", again == e, again->text, vowels, *state); //> 1 Kept text 2 2
    char* copy = foreign_copy(e->text);
    copy = realloc(copy, 100);
    strcat(copy, " copied");
    int* number = malloc(sizeof *number);
    *number = 21;
    int* doubled = foreign_apply(twice, number);
    printf("%s %d %d\n", copy, *doubled, foreign_sum(3, 1, 2, 3)); //> Kept text copied 42 6
    char* bytes = strdup("to the kernel");
    for (int i = 0; i < 20; ++i) free(malloc(32));
    printf("%ld\n", foreign_write(bytes, 13)); //> 13
    foreign_free(e->text);
    foreign_free(doubled);
    free(copy);
}
