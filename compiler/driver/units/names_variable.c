/* SPDX-License-Identifier: MIT */
struct list;
extern struct list shared_list;
struct list* where(void) { return &shared_list; }
