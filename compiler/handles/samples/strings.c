// SPDX-License-Identifier: MIT
// Functions of strings: what they return lies in the object of its home address.
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
int main(void) {
    char* text = strdup("the quick brown fox");
    char* quick = strchr(text, 'q');
    char* fox = strstr(text, "fox");
    char* none = strchr(text, 'z');
    printf("%td %td %d %td %td\n", quick - text, fox - text, none == NULL,
           strrchr(text, 'o') - text, (char*)memchr(text, 'b', 19) - text); //> 4 16 1 17 10
    printf("%d %zu %zu %d\n", strpbrk(text, "xyz") == text + 18, strspn(text, "eht"),
           strcspn(text, "k"), strcpy(malloc(30), text) != text); //> 1 3 8 1
    char* saved = NULL;
    for (char* word = strtok_r(text, " ", &saved); word != NULL; word = strtok_r(NULL, " ", &saved))
        printf("[%s@%td]", word, word - text);
    char* fields = strdup("a,,b");
    for (char *at = fields, *field; (field = strsep(&at, ",")) != NULL;) printf("(%s)", field);
    char* line = strdup("x y");
    printf("{%s", strtok(line, " "));
    printf("%s}\n", strtok(NULL, " ")); //> [the@0][quick@4][brown@10][fox@16](a)()(b){xy}
    char* numbers = strdup("12 0x1f 2.5e1 rest");
    char* end = numbers;
    const long first = strtol(end, &end, 10);
    const unsigned long second = strtoul(end, &end, 0);
    const double third = strtod(end, &end);
    char** in_heap = malloc(sizeof *in_heap);
    const long fourth = strtol(numbers, in_heap, 16);
    printf("%ld %lu %g '%s' %td %ld %td\n", first, second, third, end, end - numbers, fourth,
           *in_heap - numbers); //> 12 31 25 ' rest' 13 18 2
    char* upper = malloc(20);
    char* to = upper;
    for (const char* from = numbers + 14; *from != 0; ++from)
        *to++ = (char)toupper((unsigned char)*from);
    *to = 0;
    printf("%s %d %d\n", upper, strcasecmp(upper, "REST"), memcmp(numbers, "12", 2)); //> REST 0 0
    printf("%td %s\n", stpcpy(upper, "ab") - upper, upper);                           //> 2 ab
}
