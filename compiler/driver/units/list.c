/* SPDX-License-Identifier: MIT
 *
 * A list that is right, with functions and a variable that others see.
 */
#include "list.h"

struct list shared_list;
long first(void) { return shared_list.head == NULL ? 0 : shared_list.head->key; }
void fill_all(void) { fill(); }
long sum_all(void) { return sum(&all); }
