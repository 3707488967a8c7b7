// SPDX-License-Identifier: MIT
//
// A stranger's C program: the same as consumer.cpp.
#include <obase/obase.h>
#include <obase/version.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 1000, room = 32 };

static void write_text(char* text, int number) { snprintf(text, room, "text number %d", number); }

// How many guides hold what they should; notes the addresses if asked to.
static int intact(obase_guide* table, const void** addresses) {
    int good = 0;
    for (int i = 0; i < count; ++i) {
        char expected[room];
        write_text(expected, i);
        const uint64_t outer = obase_scope_enter();
        const char* text = obase_guide_get(&table[i]);
        good += text != NULL && strcmp(text, expected) == 0;
        if (addresses != NULL) addresses[i] = text;
        obase_scope_exit(outer);
    }
    return good;
}

int main(void) {
    obase_guide* table = malloc(count * sizeof *table);
    const void** first = malloc(count * sizeof *first);
    const void** last = malloc(count * sizeof *last);
    if (table == NULL || first == NULL || last == NULL) return 1;
    for (int i = 0; i < count; ++i) {
        obase_guide_init(&table[i]);
        char* text = obase_alloc(room, NULL);
        if (text == NULL) return 1;
        write_text(text, i);
        obase_free(obase_guide_exchange(&table[i], text));
    }

    int good = intact(table, first);
    for (int window = 0; window < 4; ++window) {
        if (obase_collect_now() != 0) {
            puts("obase_collect_now() did not do a whole window");
            return 1;
        }
        const int now = intact(table, last);
        good = now < good ? now : good;
    }

    int moved = 0;
    for (int i = 0; i < count; ++i) moved += first[i] != last[i];
    printf("obase %s (%s): %d of %d texts intact, %d moved\n", obase_version(), obase_build(), good,
           (int)count, moved);
    for (int i = 0; i < count; ++i) obase_guide_destroy(&table[i]);
    free(table);
    free(first);
    free(last);
    return good == count && moved == count ? 0 : 1;
}
