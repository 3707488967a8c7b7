// SPDX-License-Identifier: MIT
//
#pragma once
#include <stddef.h>
void* checked_alloc(size_t bytes);
void checked_free(void* memory);
