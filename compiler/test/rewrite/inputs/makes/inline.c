// SPDX-License-Identifier: MIT
#include <stdlib.h>
// CHECK: inline.c:[[@LINE+1]]:{{[0-9]+}}: error: 'take_inline' is named by a makes line, and is inline without being static, so no twin of it can be written [obase:rewrite]
extern inline char* take_inline(void) { return malloc(8); }
