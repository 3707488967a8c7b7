/* SPDX-License-Identifier: MIT
 *
 * A unit that was compiled without the passes walks the list itself.
 *
 * PLAIN: plain_unit_plain.c
 * LINK: plain_unit_plain.o was compiled without obase-clang and names 'push', 'sum'
 * STATUS: 1
 * EXPECT: error: unconverted-access
 * EXPECT: at: {folder}/plain_unit_plain.c:{any} in walk
 * EXPECT: field: list::head
 */
#include "list.h"

int walk(void);
int main(void) { return walk(); }
