// SPDX-License-Identifier: MIT
#ifndef MEMORY_H
#define MEMORY_H
#include <stddef.h>
#ifdef __cplusplus
extern "C" {
#endif
void* my_malloc(size_t bytes) __attribute__((malloc));
char* my_copy(const char* text);
void my_free(void* memory);
unsigned my_calls(void);
#ifdef __cplusplus
}
#endif
#endif
