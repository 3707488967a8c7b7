// SPDX-License-Identifier: MIT
//
// A table of texts in C: chains whose links are changed through their addresses, texts that malloc
// makes, a table that calloc makes and free ends, a list in a frame, and an entry that is found by an
// atomic load.
#include "forcing.hpp"

#include <obase/marked.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    uint64_t key;
    char* text OBASE_GUIDED;
    struct entry* next OBASE_GUIDED;
};
struct table {
    size_t buckets;
    struct entry* newest OBASE_GUIDED; // also the first of the list of all that are kept apart
    struct entry* chains[64] OBASE_GUIDED;
};
struct list {
    struct entry* first OBASE_GUIDED;
};

static struct entry** find(struct table* in, uint64_t key) {
    struct entry** link = &in->chains[key % 64];
    while (*link != NULL && (*link)->key != key) link = &(*link)->next;
    return link;
}

static char* text_of(uint64_t key) {
    char digits[32];
    snprintf(digits, sizeof digits, "text %llu", (unsigned long long)key);
    char* text = malloc(strlen(digits) + 1);
    strcpy(text, digits);
    return text;
}

static void free_entry(struct entry* gone) {
    free(gone->text);
    free(gone);
}

OBASE_ENTRY struct table* make_table(void) { return calloc(1, sizeof(struct table)); }

OBASE_ENTRY int put(struct table* in, uint64_t key) {
    struct entry** link = find(in, key);
    if (*link) {
        struct entry* known = *link;
        free(known->text);
        known->text = text_of(key);
        return 0;
    }
    struct entry* fresh = malloc(sizeof *fresh);
    fresh->key = key;
    fresh->text = NULL;
    fresh->text = text_of(key);
    fresh->next = *link;
    *link = fresh;
    return 1;
}

OBASE_ENTRY int take(struct table* from, uint64_t key) {
    struct entry** link = find(from, key);
    struct entry* gone = *link;
    if (!gone) return 0;
    *link = gone->next;
    gone->next = NULL;
    // The newest of those that were taken out stays until the next one.
    struct entry* before = __atomic_exchange_n(&from->newest, gone, __ATOMIC_ACQ_REL);
    if (before != NULL) free_entry(before);
    return 1;
}

OBASE_ENTRY uint64_t newest(struct table* of) {
    struct entry* e = __atomic_load_n(&of->newest, __ATOMIC_ACQUIRE);
    return e == NULL || NULL == e->text ? 0 : e->key + strlen(e->text);
}

OBASE_ENTRY uint64_t digest(struct table* of) {
    uint64_t sum = 0;
    for (size_t i = 0; i < 64; ++i)
        for (const struct entry* e = of->chains[i]; e; e = e->next)
            sum = sum * 31 + (e->text ? strtoull(e->text + 5, NULL, 10) : 0) + e->key;
    return sum;
}

// Each chain goes through a list of this frame, and comes back the other way round.
OBASE_ENTRY void reverse(struct table* in) {
    for (size_t i = 0; i < 64; ++i) {
        struct list turned = {NULL};
        while (in->chains[i] != NULL) {
            struct entry* e = in->chains[i];
            in->chains[i] = e->next;
            e->next = turned.first;
            turned.first = e;
        }
        in->chains[i] = turned.first;
        turned.first = NULL;
    }
}

OBASE_ENTRY void end_table(struct table* gone) {
    for (size_t i = 0; i < 64; ++i)
        while (gone->chains[i]) {
            struct entry* e = gone->chains[i];
            gone->chains[i] = e->next;
            free_entry(e);
        }
    if (gone->newest) free_entry(gone->newest);
    free(gone);
}

int main(void) {
    begin_forcing();
    for (int round = 0; round < 3; ++round) {
        struct table* all = make_table();
        uint64_t state = 4321, seen = 0;
        for (int i = 0; i < 20000; ++i) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            const uint64_t key = (state >> 33) % 2000;
            switch ((state >> 60) % 4) {
            case 0:
            case 1:
                seen = seen * 31 + (uint64_t)put(all, key);
                break;
            case 2:
                seen = seen * 31 + (uint64_t)take(all, key);
                break;
            default:
                seen = seen * 31 + newest(all);
            }
            if (i % 4000 == 3999) reverse(all);
        }
        (void)digest(all);
        wait_for_windows();
        printf("%llu %llu\n", (unsigned long long)seen, (unsigned long long)digest(all));
        end_table(all);
    }
    end_forcing();
    return 0;
}
