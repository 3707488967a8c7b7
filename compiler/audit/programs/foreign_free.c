/* SPDX-License-Identifier: MIT
 *
 * Elements are freed and resized by a unit that knows nothing of obase, and by calls through pointers.
 *
 * PLAIN: foreign_free_plain.c
 * STATUS: 0
 * EXPECT: note: foreign-free
 * EXPECT: at: {folder}/foreign_free_plain.c:{any} in destroy
 * EXPECT: 0 errors, 0 suspected
 */
#define _GNU_SOURCE
#include "list.h"

void destroy(void*);
void* grow(void*, size_t);

struct buffer {
    char* text OBASE_GUIDED;
};
static struct buffer buffer;

typedef void (*destroyer)(void*);
void clear(struct list* l, destroyer end) {
    while (l->head != NULL) {
        struct node* n = l->head;
        l->head = n->next;
        end(n);
    }
}
void begin_text(struct buffer* b) {
    b->text = malloc(8);
    strcpy(b->text, "begin");
}
void grow_text(struct buffer* b, size_t bytes) {
    char* old = b->text;
    b->text = NULL;
    b->text = grow(old, bytes);
    strcat(b->text, "+");
}
void array_text(struct buffer* b, size_t count) { b->text = reallocarray(b->text, count, 2); }
size_t length(struct buffer* b) { return strlen(b->text); }

int main(void) {
    fill();
    clear(&all, free);
    fill();
    clear(&all, destroy);
    fill();
    begin_text(&buffer);
    for (size_t i = 1; i <= 6; ++i) grow_text(&buffer, 16 * i);
    array_text(&buffer, 100);
    printf("%ld %zu\n", sum(&all), length(&buffer));
}
