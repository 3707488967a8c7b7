/* SPDX-License-Identifier: MIT
 *
 * Every function of obase.h, from a C program, errors included. Exit status 0 or a line that says
 * what is wrong.
 */
#include <obase/obase.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int holds, const char* what, int line) {
    if (holds) return;
    fprintf(stderr, "c_interface_test.c:%d: not met: %s\n", line, what);
    exit(1);
}
#define CHECK(condition) check((condition) != 0, #condition, __LINE__)

enum { objects = 2000, text_bytes = 96 };

struct entry {
    obase_guide value;
};
static struct entry table[objects];

static char* make_text(unsigned number) {
    char* text = obase_alloc(text_bytes, NULL);
    CHECK(text != NULL);
    CHECK((uintptr_t)text % 16 == 0);
    CHECK(obase_usable_size(text) >= text_bytes);
    memset(text, (int)(number % 100), text_bytes);
    memcpy(text, &number, sizeof number);
    return text;
}

static int is_text(const char* text, unsigned number) {
    unsigned found;
    memcpy(&found, text, sizeof found);
    return found == number && text[sizeof found] == (char)(number % 100) &&
           text[text_bytes - 1] == (char)(number % 100);
}

static void expect_error(const char* name, const char* value, const char* part) {
    char* error = obase_configure(name, value);
    CHECK(error != NULL);
    if (strstr(error, part) == NULL) {
        fprintf(stderr, "obase_configure(%s, %s): '%s' does not say '%s'\n", name, value, error,
                part);
        exit(1);
    }
    free(error);
}

static void test_options(void) {
    expect_error("no_such_option", "1", "no_such_option");
    expect_error("window_seconds", "soon", "window_seconds");
    expect_error("mode", "sideways", "sideways");
    expect_error("cold_threshold", "33", "cold_threshold");
    CHECK(obase_configure("window_seconds", "1000000") == NULL);
    CHECK(obase_configure("OBASE_COLD_THRESHOLD", "2") == NULL);
}

static void test_allocation(void) {
    obase_allocation_options how = {0};
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        how.alignment = alignment;
        char* object = obase_alloc(100, &how);
        CHECK(object != NULL && (uintptr_t)object % alignment == 0);
        memset(object, 1, 100);
        obase_free(object);
    }
    how.alignment = 0;
    obase_free(obase_alloc(1, &how));
    obase_free(NULL);
    how.alignment = 3;
    CHECK(obase_alloc(100, &how) == NULL);
    how.alignment = 8192;
    CHECK(obase_alloc(100, &how) == NULL);
    /* Sizes that are too large, and those that wrap when they are rounded up. */
    CHECK(obase_alloc(SIZE_MAX, NULL) == NULL);
    how.alignment = 4096;
    for (size_t less = 0; less < 5000; less += 7) CHECK(obase_alloc(SIZE_MAX - less, &how) == NULL);
    char* large = obase_alloc((size_t)1 << 20, NULL);
    CHECK(large != NULL);
    large[((size_t)1 << 20) - 1] = 1;
    obase_free(large);
    char* empty = obase_alloc(0, NULL);
    CHECK(empty != NULL);
    obase_free(empty);
}

static void test_guide(void) {
    obase_guide a, b;
    obase_guide_init(&a);
    obase_guide_init(&b);
    CHECK(obase_guide_is_null(&a));
    char* one = make_text(1);
    CHECK(obase_guide_exchange(&a, one) == NULL);
    CHECK(!obase_guide_is_null(&a));

    uint64_t outer = obase_scope_enter();
    CHECK(obase_guide_get(&a) == one);
    uint64_t inner = obase_scope_enter();
    CHECK(inner != outer);
    CHECK(obase_guide_get(&b) == NULL);
    obase_scope_exit(inner);
    CHECK(obase_collect_now() == 1); /* in a scope */

    /* Compare-exchange: by address, whatever the runtime has in the other bits. */
    void* expected = NULL;
    char* two = make_text(2);
    CHECK(!obase_guide_compare_exchange(&a, &expected, two));
    CHECK(expected == one);
    CHECK(obase_guide_compare_exchange(&a, &expected, two));
    CHECK(obase_guide_get(&a) == two);
    obase_scope_exit(outer);
    obase_free(one);

    obase_guide_exchange(&b, make_text(3));
    obase_guide_move(&b, &a); /* frees 3 */
    CHECK(obase_guide_is_null(&a));
    obase_guide_move(&b, &b);
    outer = obase_scope_enter();
    CHECK(is_text(obase_guide_get(&b), 2));
    obase_scope_exit(outer);

    void* taken = obase_guide_exchange(&b, NULL);
    CHECK(is_text(taken, 2));
    obase_free(taken);
    obase_guide_destroy(&a);
    obase_guide_destroy(&b);
}

static void test_moves(void) {
    for (unsigned i = 0; i < objects; ++i) {
        obase_guide_init(&table[i].value);
        CHECK(obase_guide_exchange(&table[i].value, make_text(i)) == NULL);
    }
    CHECK(obase_collect_now() == 0);
    uint64_t outer = obase_scope_enter();
    void* pinned_at = obase_guide_get(&table[7].value);
    obase_pin* pin = obase_pin_object(pinned_at);
    CHECK(pin != NULL);
    CHECK(obase_pin_object(NULL) == NULL);
    void* before[objects];
    for (unsigned i = 0; i < objects; ++i) before[i] = obase_guide_get(&table[i].value);
    obase_scope_exit(outer);
    /* To HOT at once, or to COLD where the debug mode makes everything look unused. */
    for (int window = 0; window < 4; ++window) CHECK(obase_collect_now() == 0);
    unsigned moved = 0;
    outer = obase_scope_enter();
    for (unsigned i = 0; i < objects; ++i) {
        void* now = obase_guide_get(&table[i].value);
        moved += now != before[i];
        CHECK(is_text(now, i));
    }
    CHECK(obase_guide_get(&table[7].value) == pinned_at);
    obase_scope_exit(outer);
    CHECK(moved > objects / 2);
    obase_unpin(pin);
    obase_unpin(NULL);
}

static atomic_int destroyed;
static void destroy_text(void* object) {
    CHECK(is_text(object, 4711));
    atomic_fetch_add(&destroyed, 1);
    obase_free(object);
}

static void test_retire(void) {
    uint64_t outer = obase_scope_enter();
    obase_retire(make_text(4711), destroy_text);
    obase_retire(make_text(1), NULL);
    obase_retire(NULL, NULL);
    obase_reclaim_now();
    CHECK(atomic_load(&destroyed) == 0); /* this scope could still hold the address */
    obase_scope_exit(outer);
    while (atomic_load(&destroyed) == 0) obase_reclaim_now(); /* or the collector does it */
    CHECK(atomic_load(&destroyed) == 1);
}

static void test_forget(void) {
    size_t bytes = 64 * sizeof(obase_guide);
    obase_guide* arena = malloc(bytes);
    char* owned[64];
    CHECK(arena != NULL);
    for (unsigned i = 0; i < 64; ++i) {
        obase_guide_init(&arena[i]);
        owned[i] = make_text(i);
        obase_guide_exchange(&arena[i], owned[i]);
    }
    obase_forget_guides(arena, bytes);
    memset(arena, 0x5a, bytes); /* no guides any more: the collector must not look */
    uint64_t outer = obase_scope_enter();
    obase_scope_exit(outer);
    CHECK(obase_collect_now() == 0);
    for (size_t i = 0; i < bytes; ++i) CHECK(((unsigned char*)arena)[i] == 0x5a);
    for (unsigned i = 0; i < 64; ++i) {
        CHECK(is_text(owned[i], i)); /* forgetting a guide does not free its object */
        obase_free(owned[i]);
    }
    free(arena);
}

static atomic_int stop;
static void* reader(void* argument) {
    const unsigned step = (unsigned)(uintptr_t)argument;
    while (!atomic_load(&stop)) {
        for (unsigned i = 0; i < objects; i += step) {
            uint64_t outer = obase_scope_enter();
            CHECK(is_text(obase_guide_get(&table[i].value), i));
            obase_scope_exit(outer);
        }
    }
    return NULL;
}
static void* replacer(void* argument) {
    (void)argument;
    for (unsigned round = 0; round < 20; ++round)
        for (unsigned i = 0; i < objects; i += 3)
            obase_retire(obase_guide_exchange(&table[i].value, make_text(i)), NULL);
    return NULL;
}

static void test_threads(void) {
    pthread_t threads[3];
    CHECK(pthread_create(&threads[0], NULL, reader, (void*)(uintptr_t)3) == 0);
    CHECK(pthread_create(&threads[1], NULL, reader, (void*)(uintptr_t)7) == 0);
    CHECK(pthread_create(&threads[2], NULL, replacer, NULL) == 0);
    for (int window = 0; window < 30; ++window) {
        const int result = obase_collect_now();
        CHECK(result == 0 || result == 3);
    }
    CHECK(pthread_join(threads[2], NULL) == 0);
    atomic_store(&stop, 1);
    CHECK(pthread_join(threads[0], NULL) == 0);
    CHECK(pthread_join(threads[1], NULL) == 0);
}

static void test_runtime(void) {
    expect_error("heap_reserve", "1G", "heap_reserve"); /* after the first object */
    obase_set_mode(OBASE_MODE_OFF);
    CHECK(obase_collect_now() == 2);
    obase_set_mode(OBASE_MODE_OBSERVE);
    CHECK(obase_collect_now() == 0);
    obase_set_mode(OBASE_MODE_HINT);
    CHECK(obase_collect_now() == 0);
    obase_set_mode(OBASE_MODE_MOVE);
    obase_stop();
    CHECK(obase_collect_now() == 2);
    CHECK(obase_start() == NULL);
    CHECK(obase_collect_now() == 0);

    char* text = obase_statistics_json();
    CHECK(text != NULL && text[0] == '{' && strstr(text, "\"scanned_guides\"") != NULL);
    free(text);
    text = obase_statistics_prometheus();
    CHECK(text != NULL && strstr(text, "# TYPE obase_") != NULL);
    free(text);
    text = obase_self_check();
    CHECK(text != NULL);
    free(text);
}

int main(void) {
    test_options();
    test_allocation();
    test_guide();
    test_moves();
    test_retire();
    test_forget();
    test_threads();
    test_runtime();
    for (unsigned i = 0; i < objects; ++i) obase_guide_destroy(&table[i].value);
    return 0;
}
