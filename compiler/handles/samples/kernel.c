// SPDX-License-Identifier: MIT
// foreign: kernel_part.c
// What foreign code finds in memory goes to the kernel: objects, vectors, messages, names.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
struct part {
    char* text;
    struct part* next;
};
long foreign_write_all(int file, struct part* const* first);
long foreign_write_vector(int file, struct iovec* const* vector, int count);
long foreign_read_into(int file, struct part* const* to, long size);
long foreign_message(int file, struct msghdr* const* message);
long foreign_length_of(struct part* const* name);
// The program's own: foreign code gets that.
int rmdir(const char* name) { return (int)strlen(name) + 1000; }
int foreign_rmdir(struct part* const* name);
static struct part* part_of(const char* text, struct part* next) {
    struct part* made = malloc(sizeof *made);
    made->text = strdup(text);
    made->next = next;
    return made;
}
static void some_polls(void) {
    for (int i = 0; i < 20; ++i) free(malloc(32));
}
int main(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return 1;
    // Foreign code gets the address of a variable of the frame: nothing of the list is kept at home.
    struct part* list = part_of("one ", part_of("two ", part_of("three ", NULL)));
    some_polls();
    printf("%ld\n", foreign_write_all(ends[0], &list)); //> 14
    struct iovec* vector = malloc(2 * sizeof *vector);
    for (int i = 0; i < 2; ++i) {
        vector[i].iov_base = strdup(i == 0 ? "four " : "five ");
        vector[i].iov_len = 5;
    }
    some_polls();
    printf("%ld\n", foreign_write_vector(ends[0], &vector, 2)); //> 10
    struct msghdr* message = calloc(1, sizeof *message);
    message->msg_iov = vector;
    message->msg_iovlen = 2;
    some_polls();
    printf("%ld\n", foreign_message(ends[0], &message)); //> 10
    struct part* to = part_of("                                        ", NULL);
    some_polls();
    printf("%ld\n", foreign_read_into(ends[1], &to, 34)); //> 34
    printf("%.34s.\n", to->text);                         //> one two three four five four five .
    struct part* name = part_of("/proc/self/cmdline", NULL);
    some_polls();
    printf("%ld\n", foreign_length_of(&name));                  //> 1
    printf("%d %d\n", foreign_rmdir(&name), rmdir(name->text)); //> 1018 1018
}
