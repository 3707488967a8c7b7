/* SPDX-License-Identifier: MIT */
#include <string.h>
void copy_bytes(void* to, const void* from, size_t bytes) { memcpy(to, from, bytes); }
