/* SPDX-License-Identifier: MIT */
#pragma once
struct item;
struct cache { struct item* first; };
#ifdef __cplusplus
extern "C" {
#endif
int cache_put(struct cache* c, int key, int value);
int cache_get(const struct cache* c, int key, int* value);
#ifdef __cplusplus
}
#endif
