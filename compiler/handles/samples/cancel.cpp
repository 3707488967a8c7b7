// SPDX-License-Identifier: MIT
// foreign: cancel_part.c
// What cancels a thread in a call, and an exception from foreign code, run destructors online: objects that they reach
// do not move under them. A thread that is not online, and the program's exit, would be seen by the second round.
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <pthread.h>
#include <unistd.h>
extern "C" {
void foreign_call(void (*)(int*), int*);
void foreign_wait(int);
unsigned long obase_handles_jump_save() __attribute__((weak));
}
static int pipes[2];
static int* seen;
static bool is_online() { // the third byte: calls that went offline
    return obase_handles_jump_save == nullptr || (obase_handles_jump_save() >> 16 & 0xFF) == 0;
}
struct cleanup {
    int* number;
    ~cleanup() { *seen += *number + (is_online() ? 0 : 1000); }
};
static void* reads(void*) {
    int* number = static_cast<int*>(malloc(sizeof *number));
    *number = 1;
    cleanup at_end{number};
    char* to = static_cast<char*>(malloc(100));
    return reinterpret_cast<void*>(read(pipes[0], to, 100));
}
static void* waits(void*) {
    int* number = static_cast<int*>(malloc(sizeof *number));
    *number = 10;
    cleanup at_end{number};
    foreign_wait(pipes[0]);
    return nullptr;
}
static void* takes_line(void*) {
    int* number = static_cast<int*>(malloc(sizeof *number));
    *number = 100;
    cleanup at_end{number};
    FILE* from = fdopen(pipes[0], "r");
    char* line = nullptr;
    size_t size = 0;
    return reinterpret_cast<void*>(getline(&line, &size, from));
}
static void throws(int* number) { throw *number; }
int main() {
    seen = static_cast<int*>(calloc(1, sizeof *seen));
    if (pipe(pipes) != 0) return 1;
    for (auto* function : {reads, waits, takes_line}) {
        pthread_t thread;
        pthread_create(&thread, nullptr, function, nullptr);
        usleep(20000);
        pthread_cancel(thread);
        void* result = nullptr;
        pthread_join(thread, &result);
        printf("%d %d\n", *seen, result == PTHREAD_CANCELED);
    }
    //> 1 1
    //> 11 1
    //> 111 1
    int* number = static_cast<int*>(malloc(sizeof *number));
    *number = 7;
    for (int i = 0; i < 2; ++i) {
        try {
            foreign_call(throws, number);
        } catch (int thrown) { printf("%d %d\n", thrown, is_online()); }
    }
    //> 7 1
    //> 7 1
}
