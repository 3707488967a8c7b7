// SPDX-License-Identifier: MIT
// The part of kernel.c that is compiled by clang alone.
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
struct part {
    char* text;
    struct part* next;
};
long foreign_write_all(int file, struct part* const* first) {
    long sum = 0;
    for (const struct part* at = *first; at != NULL; at = at->next)
        sum += write(file, at->text, strlen(at->text));
    return sum;
}
long foreign_write_vector(int file, struct iovec* const* vector, int count) {
    return writev(file, *vector, count);
}
long foreign_message(int file, struct msghdr* const* message) { return sendmsg(file, *message, 0); }
// The kernel is the first that reaches the text.
long foreign_read_into(int file, struct part* const* to, long size) {
    return read(file, (*to)->text, (unsigned long)size);
}
long foreign_length_of(struct part* const* name) {
    FILE* file = fopen((*name)->text, "r");
    if (file == NULL) return -1;
    const long any = fgetc(file) != EOF;
    fclose(file);
    return any;
}
int foreign_rmdir(struct part* const* name) { return rmdir((*name)->text); }
