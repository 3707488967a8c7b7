// SPDX-License-Identifier: MIT
// Addresses behind addresses that reach the kernel, and memory that stays in use after the call.
#define _GNU_SOURCE
#include <linux/filter.h>
#include <net/if.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
extern char** environ;
static volatile sig_atomic_t handled;
static void handle(int number) {
    char bytes[64];
    memset(bytes, number, sizeof bytes);
    handled = bytes[3];
}
static ucontext_t *outer, *inner;
static int switched;
static void in_context(void) {
    ++switched;
    swapcontext(inner, outer);
    ++switched;
}
static struct iovec* vector_of(const char* one, const char* other) {
    struct iovec* made = malloc(2 * sizeof *made);
    made[0] = (struct iovec){strdup(one), strlen(one)};
    made[1] = (struct iovec){strdup(other), strlen(other)};
    return made;
}
int main(void) {
    int status = 0;
    char** arguments = calloc(4, sizeof *arguments);
    arguments[0] = strdup("sh");
    arguments[1] = strdup("-c");
    arguments[2] = strdup("exit $VARIABLE");
    char** environment = calloc(2, sizeof *environment);
    environment[0] = strdup("VARIABLE=3");
    pid_t* child = malloc(sizeof *child);
    int failed = posix_spawn(child, "/bin/sh", NULL, NULL, arguments, environment);
    waitpid(*child, &status, 0);
    printf("%d %d\n", failed, WEXITSTATUS(status)); //> 0 3
    environ = environment;
    printf("%d\n", WEXITSTATUS(system("exit $VARIABLE"))); //> 3
    FILE* from = popen("echo $VARIABLE", "r");
    char* text = calloc(1, 40);
    if (fgets(text, 40, from) == NULL) text[0] = '?';
    printf("%d %s", pclose(from), text); //> 0 3
    if (fork() == 0) {
        execl(strdup("/bin/sh"), strdup("sh"), strdup("-c"), strdup("exit $VARIABLE"), (char*)NULL);
        _exit(99);
    }
    wait(&status);
    printf("%d\n", WEXITSTATUS(status)); //> 3

    int* ends = calloc(2, sizeof *ends);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) != 0) return 1;
    struct mmsghdr* messages = calloc(2, sizeof *messages);
    for (int i = 0; i < 2; ++i) {
        messages[i].msg_hdr.msg_iov = vector_of("hello ", i ? "there" : "you");
        messages[i].msg_hdr.msg_iovlen = 2;
    }
    int sent = sendmmsg(ends[0], messages, 2, 0);
    struct mmsghdr* came = calloc(2, sizeof *came);
    for (int i = 0; i < 2; ++i) {
        came[i].msg_hdr.msg_iov = vector_of("......", "......");
        came[i].msg_hdr.msg_iovlen = 2;
    }
    int received = recvmmsg(ends[1], came, 2, 0, NULL);
    printf("%d %u %d %u %.5s\n", sent, messages[1].msg_len, received, came[1].msg_len,
           (char*)came[1].msg_hdr.msg_iov[1].iov_base); //> 2 11 2 11 there

    int file = memfd_create("file", 0);
    long written = pwritev2(file, vector_of("first ", "second"), 2, 0, 0);
    struct iovec* to = vector_of("......", "......");
    long read_back = preadv2(file, to, 2, 0, 0);
    printf("%ld %ld %.6s\n", written, read_back, (char*)to[1].iov_base); //> 12 12 second
    if (pipe(ends) != 0) return 1;
    long spliced = vmsplice(ends[1], vector_of("through ", "a pipe"), 2, 0);
    memset(text, 0, 40);
    long through = read(ends[0], text, 39);
    printf("%ld %ld %s\n", spliced, through, text); //> 14 14 through a pipe

    char* name = calloc(1, 16);
    failed = prctl(PR_SET_NAME, strdup("renamed"), 0, 0, 0);
    prctl(PR_GET_NAME, name, 0, 0, 0);
    printf("%d %s\n", failed, name); //> 0 renamed
    struct sock_filter* filter = malloc(sizeof *filter);
    *filter = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, ~0u);
    struct sock_fprog* program = malloc(sizeof *program);
    *program = (struct sock_fprog){1, filter};
    int out = socket(AF_INET, SOCK_DGRAM, 0);
    printf("%d\n", setsockopt(out, SOL_SOCKET, SO_ATTACH_FILTER, program, sizeof *program)); //> 0
    struct ifconf* interfaces = malloc(sizeof *interfaces);
    interfaces->ifc_len = 40 * sizeof(struct ifreq);
    interfaces->ifc_buf = calloc(40, sizeof(struct ifreq));
    failed = ioctl(out, SIOCGIFCONF, interfaces);
    printf("%d %d\n", failed, interfaces->ifc_len >= (int)sizeof(struct ifreq)); //> 0 1
    text = strdup("by number\n");
    fflush(stdout);
    printf("%ld\n", syscall(SYS_write, 1, text, strlen(text))); //> by number
    //> 10

    stack_t* stack = calloc(1, sizeof *stack);
    *stack = (stack_t){.ss_sp = malloc(8192), .ss_size = 8192};
    failed = sigaltstack(stack, NULL);
    struct sigaction* action = calloc(1, sizeof *action);
    action->sa_handler = handle;
    action->sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, action, NULL);
    raise(SIGUSR1);
    printf("%d %d\n", failed, handled == SIGUSR1); //> 0 1

    outer = calloc(1, sizeof *outer);
    inner = calloc(1, sizeof *inner);
    getcontext(inner);
    inner->uc_stack.ss_sp = malloc(16000);
    inner->uc_stack.ss_size = 16000;
    inner->uc_link = outer;
    makecontext(inner, in_context, 0);
    swapcontext(outer, inner);
    for (int i = 0; i < 20; ++i) free(malloc(40));
    swapcontext(outer, inner);
    printf("%d\n", switched); //> 2
}
