# SPDX-License-Identifier: MIT
"""Random C programs, compiled by clang alone and with `obase-clang --handles`; at home and in stress mode all must print
the same. A program is a table of lists, trees and arrays on which random operations are done: interior and past-the-end
addresses, addresses as numbers, unions, variable arguments, realloc, strings, callbacks, threads.

    run_random.py --clang clang-19 --driver build/bin/obase-clang --out DIR [--seed N] [--count N]
"""

import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys

PROLOGUE = r"""
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct node { struct node *next, *other; long value; };
union word { void* address; uint64_t bits; struct { uint32_t low, high; } halves; };
struct box { long* numbers; size_t count; char* text; struct node* list; union word tagged; long (*apply)(struct box*, long); };
static long hash = 17;
static void mix(long x) { hash = (long)((unsigned long)hash * 31 + (unsigned long)x); }
static long many(int count, ...) {
    va_list list;
    va_start(list, count);
    long sum = 0;
    for (int i = 0; i < count; ++i) { long* at = va_arg(list, long*); sum += *at; *at += i; }
    va_end(list);
    return sum;
}
static int by_value(const void* a, const void* b) { long x = *(const long*)a, y = *(const long*)b; return (x > y) - (x < y); }
static struct box* boxes[8];
static long plus(struct box* b, long x) { return x + (long)b->count; }
static long times(struct box* b, long x) { return x * 3 + b->numbers[0]; }
static struct box* make(long seed) {
    struct box* b = calloc(1, sizeof *b);
    b->count = (size_t)(seed % 13 + 1);
    b->numbers = malloc(b->count * sizeof *b->numbers);
    for (size_t i = 0; i < b->count; ++i) b->numbers[i] = seed * (long)(i + 1);
    b->text = malloc(32);
    snprintf(b->text, 32, "box-%ld-%zu", seed, b->count);
    b->apply = seed % 2 != 0 ? plus : times;
    b->tagged.address = b->numbers;
    b->tagged.bits |= 1;
    return b;
}
static void* thread(void* argument) {
    struct box* b = argument;
    struct node* list = NULL;
    for (long i = 0; i < 50; ++i) { struct node* n = malloc(sizeof *n); *n = (struct node){list, NULL, i * (long)b->count}; list = n; }
    long sum = 0;
    while (list != NULL) { struct node* gone = list; list = list->next; sum += gone->value; free(gone); }
    long* result = malloc(sizeof *result);
    *result = sum;
    return result;
}
"""

# Each with B for a box, N for a small number.
OPERATIONS = [
    "{ struct node* n = malloc(sizeof *n); *n = (struct node){B->list, B->list, N}; B->list = n; }",
    "for (struct node* n = B->list; n != NULL; n = n->next) { mix(n->value); n->value += N; if (n->other != NULL) n->other->value ^= N; }",
    "for (struct node** at = &B->list; *at != NULL;) if ((*at)->value % 3 == 0) { struct node* gone = *at; *at = gone->next; for (struct node* n = B->list; n != NULL; n = n->next) if (n->other == gone) n->other = NULL; free(gone); } else at = &(*at)->next;",
    "for (long* end = B->numbers + B->count; end != B->numbers; --end) mix(end[-1]);",
    "{ long* middle = B->numbers + B->count / 2; for (long i = -(long)(B->count / 2); i < (long)(B->count - B->count / 2); ++i) middle[i] += i * N; }",
    "{ const size_t more = B->count + N; B->numbers = realloc(B->numbers, more * sizeof(long)); while (B->count < more) { B->numbers[B->count] = (long)B->count * N; ++B->count; } B->tagged.address = B->numbers; B->tagged.bits |= 1; }",
    "if (B->count > 4) { B->count -= 2; B->numbers = realloc(B->numbers, B->count * sizeof(long)); B->tagged.address = B->numbers; B->tagged.bits |= 1; }",
    "mix(*(long*)(B->tagged.bits & ~(uint64_t)1));",
    "{ union word w; w.halves.low = B->tagged.halves.low - 1; w.halves.high = B->tagged.halves.high; mix(*(long*)w.address); }",
    "mix(many(3, &B->numbers[0], &B->numbers[B->count - 1], &B->numbers[B->count / 2]));",
    "qsort(B->numbers, B->count, sizeof(long), by_value); { long key = B->numbers[B->count / 3]; long* at = bsearch(&key, B->numbers, B->count, sizeof(long), by_value); mix(at != NULL ? *at : -1); }",
    "{ char* at = strchr(B->text, '-'); mix(at - B->text); char* end; mix(strtol(at + 1, &end, 10)); mix(*end); }",
    "{ char* copy = strdup(B->text); char* saved; for (char* w = strtok_r(copy, \"-\", &saved); w != NULL; w = strtok_r(NULL, \"-\", &saved)) mix((long)strlen(w)); free(copy); }",
    "snprintf(B->text, 32, \"%s%d\", \"n-\", N); mix((long)strlen(B->text));",
    "mix(B->apply(B, N));",
    "{ struct box copy = *B; copy.numbers[0] += N; mix(copy.numbers[0]); *B = copy; }",
    "{ struct box* t = B; B = C; C = t; }",
    "{ long* moved = malloc(B->count * sizeof(long)); memcpy(moved, B->numbers, B->count * sizeof(long)); memmove(moved, moved + 1, (B->count - 1) * sizeof(long)); mix(moved[0]); free(B->numbers); B->numbers = moved; B->tagged.address = moved; B->tagged.bits |= 1; }",
    "{ pthread_t t; void* r; pthread_create(&t, NULL, thread, B); pthread_join(t, &r); mix(*(long*)r); free(r); }",
    "{ uintptr_t x = (uintptr_t)B ^ (uintptr_t)C; struct box* back = (struct box*)(x ^ (uintptr_t)C); mix((long)back->count); mix(back == B); }",
    "for (int i = 0; i < N; ++i) { if (B->list == NULL) break; B->list->value += B->numbers[i % (int)B->count]; if (i % 2 != 0 && B->list->next != NULL) B->list->next->value -= i; }",
    "{ long sum = 0; for (size_t i = 0; i < B->count; ++i) sum += B->numbers[i] * C->numbers[i % C->count]; mix(sum); }",
    "{ long* p = N % 2 != 0 ? B->numbers : C->numbers; long local[3] = {1, 2, 3}; long* q = N % 3 != 0 ? p : local; *q += 5; mix(q[0]); }",
]


def program(seed):
    chance = random.Random(seed)
    functions, calls = [], []
    for number in range(chance.randint(3, 7)):
        body = []
        for _ in range(chance.randint(2, 7)):
            text = chance.choice(OPERATIONS)
            one, other = chance.sample(range(8), 2)
            text = re.sub(r"\bB\b", f"boxes[{one}]", text)
            text = re.sub(r"\bC\b", f"boxes[{other}]", text)
            text = re.sub(r"\bN\b", lambda _: str(chance.randint(1, 9)), text)
            if chance.random() < .3:
                text = f"for (int turn = 0; turn < {chance.randint(2, 5)}; ++turn) {{ {text} }}"
            elif chance.random() < .2:
                text = f"if (hash % 3 != 0) {{ {text} }}"
            body.append("    " + text)
        functions.append(f"{chance.choice(['', 'static ', '__attribute__((noinline)) '])}void step{number}(void) {{\n" + "\n".join(body) + "\n}")
        calls.append(f"        step{number}();")
    chance.shuffle(calls)
    main = ("int main(void) {\n    for (long i = 0; i < 8; ++i) boxes[i] = make(i * 7 + 3);\n"
            f"    for (int round = 0; round < {chance.randint(3, 12)}; ++round) {{\n" + "\n".join(calls) +
            "\n        printf(\"%lx\\n\", (unsigned long)hash);\n    }\n}\n")
    return PROLOGUE + "\n".join(functions) + "\n" + main


def run(command, environment=None):
    return subprocess.run(["timeout", "300", *(str(part) for part in command)], text=True, errors="replace",
                          env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def check(options, seed):
    level = f"-O{seed % 4}"
    source = options.out / f"random{seed}.c"
    source.write_text(program(seed))
    flags = [level, "-std=gnu17", "-w", "-pthread", source]
    plain, ours = source.with_suffix(".plain"), source.with_suffix(".handles")
    for command in ([options.clang, *flags, "-o", plain], [options.driver, "--handles", *flags, "-o", ours]):
        built = run(command)
        if built.returncode != 0:
            return f"seed {seed}: {' '.join(str(part) for part in command)}\n{built.stdout[-2000:]}"
    wanted = run([plain])
    for way, environment in (("at home", {}), ("stress", {"OBASE_HANDLES_STRESS": "1"}), ("stress 7", {"OBASE_HANDLES_STRESS": "7"})):
        done = run([ours], environment)
        if (done.returncode, done.stdout) != (wanted.returncode, wanted.stdout):
            return (f"seed {seed}, {level}, {way}: exit status {done.returncode}, clang's {wanted.returncode}; see {source}\n"
                    f"{done.stdout[-600:]}\nand not\n{wanted.stdout[-600:]}")
    if wanted.returncode != 0:
        return f"seed {seed}: exit status {wanted.returncode} without handles: the generator is wrong"
    for path in (source, plain, ours):
        path.unlink()
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clang", required=True)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--count", type=int, default=20)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [text for text in pool.map(lambda seed: check(options, seed), range(options.seed, options.seed + options.count)) if text]
    print(f"{options.count} programs, {len(wrong)} wrong")
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
