/* SPDX-License-Identifier: MIT
 *
 * What the programs of compiler/torture include. settle() lets all windows pass that a move needs:
 * what an operation of before has kept is stale afterwards. Plain programs do nothing in it.
 */
#pragma once
#include <obase/marked.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
extern "C" void settle(void);
#else
void settle(void);
#endif
