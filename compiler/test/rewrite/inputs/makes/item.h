// SPDX-License-Identifier: MIT
#ifndef ITEM_H
#define ITEM_H
#include <stddef.h>
struct item {
    char* text;
    char* spare;
};
#ifdef __cplusplus
extern "C" {
#endif
void item_set(struct item* i, const char* text);
void item_reserve(struct item* i, size_t bytes);
char* other_memory(const char* text);
#ifdef __cplusplus
}
#endif
#endif
