// SPDX-License-Identifier: MIT
// What the C library keeps (putenv, setvbuf), a child process, and execv's vector.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    char* buffer = malloc(4096);
    setvbuf(stdout, buffer, _IOFBF, 4096);
    putenv(strdup("KEPT=for long"));
    setenv(strdup("COPIED"), strdup("at once"), 1);
    char* work = malloc(100);
    for (int i = 0; i < 100; ++i) work[i] = (char)i;
    printf("%s, %s\n", getenv("KEPT"), getenv("COPIED")); //> for long, at once
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        work[1] = 50;
        char** arguments = calloc(4, sizeof *arguments);
        arguments[0] = strdup("sh");
        arguments[1] = strdup("-c");
        arguments[2] = strdup("echo child $KEPT");
        if (work[1] + work[2] == 52) execv(strdup("/bin/sh"), arguments);
        _exit(1);
    }
    int* status = malloc(sizeof *status);
    waitpid(child, status, 0);                                           //> child for long
    printf("%d %d %d\n", WEXITSTATUS(*status), work[1], errno == EBADF); //> 0 1 0
}
