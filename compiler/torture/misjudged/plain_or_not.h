/* SPDX-License-Identifier: MIT
 *
 * Whether this is the plain program, or one with obase, which runs without the audit.
 */
#pragma once
#include "list.h"

extern void with_obase(void)
    __attribute__((weak)) __asm__("obase_memory_free"); /* null in a plain program */
static int is_forced(void) { return with_obase != NULL && getenv("OBASE_AUDIT") == NULL; }
