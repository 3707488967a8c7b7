// SPDX-License-Identifier: MIT
// Files, pipes, vectors of buffers, lines.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void) {
    FILE* file = tmpfile();
    char* text = strdup("first line\nsecond\n\nlast without end");
    fwrite(text, 1, strlen(text), file);
    rewind(file);
    char* line = NULL;
    size_t room = 0;
    ssize_t length;
    while ((length = getline(&line, &room, file)) >= 0) printf("%zd:%.4s;", length, line);
    printf("%d\n", feof(file) != 0); //> 11:firs;7:seco;1:
    rewind(file);                    //> ;16:last;1
    char* buffer = malloc(100);
    printf("%s", fgets(buffer, 100, file) == buffer ? buffer : "?"); //> first line
    printf("%zu %c\n", fread(buffer, 1, 6, file), buffer[5]);        //> 6 d
    int* ends = malloc(2 * sizeof *ends);
    if (pipe(ends) != 0) return 1;
    struct iovec* parts = malloc(2 * sizeof *parts);
    parts[0] = (struct iovec){strdup("abc"), 3};
    parts[1] = (struct iovec){strdup("defg"), 4};
    printf("%zd ", writev(ends[1], parts, 2));
    printf("%zd ", read(ends[0], buffer, 100));
    printf("%.7s\n", buffer); //> 7 7 abcdefg
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    struct msghdr* message = calloc(1, sizeof *message);
    message->msg_iov = parts;
    message->msg_iovlen = 2;
    printf("%zd ", sendmsg(ends[0], message, 0));
    memset(parts[0].iov_base, 0, 3);
    printf("%zd %s %.4s ", recvmsg(ends[1], message, 0), (char*)parts[0].iov_base,
           (char*)parts[1].iov_base);
    struct stat* about = malloc(sizeof *about);
    printf("%d %d\n", stat("/", about), S_ISDIR(about->st_mode)); //> 7 7 abc defg 0 1
}
