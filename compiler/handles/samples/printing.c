// SPDX-License-Identifier: MIT
// flags: -D_GNU_SOURCE
// printf and scanf: what %s and %n reach, and that %p is the home.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void) {
    char* name = strdup("name");
    char* format = strdup("%s|%5.2f|%-6s|%*d|%.*s|%c|%%|%" PRIu64 "\n");
    printf(format, name, 3.14159, name, 4, 42, 2, name, 'x',
           UINT64_C(1) << 40);           //> name| 3.14|name  |  42|na|x|%|1099511627776
    printf("%2$s %1$d %2$s\n", 7, name); //> name 7 name
    char shown[40];
    snprintf(shown, sizeof shown, "%p", (void*)name);
    void* read = NULL;
    sscanf(shown, "%p", &read);
    printf("%d\n", read == name); //> 1
    int* count = malloc(sizeof *count);
    char* word = malloc(20);
    double* number = malloc(sizeof *number);
    const char* input = strdup("12 words 2.5 tail");
    const int fields = sscanf(input, "%d %19s %lf %*s", count, word, number);
    printf("%d %d %s %g\n", fields, *count, word, *number); //> 3 12 words 2.5
    char* printed = NULL;
    const int length = asprintf(&printed, "<%s>", word);
    printf("%d %s\n", length, printed); //> 7 <words>
    sprintf(word, "%Lg %hhd %ld %zu", 0.5L, (char)300, -1L, sizeof(int));
    puts(word); //> 0.5 44 -1 4
    fprintf(stdout, "%s %s %s %s %s %s %s %s\n", name, name, name, name, name, name, name,
            name); //> name name name name name name name name
    fputs(name, stdout);
    fwrite(name, 1, 4, stdout);
    putchar('\n'); //> namename
}
