// SPDX-License-Identifier: MIT
// RUN: %refuse++
// The class around copies its member.
#include "marks.h"
struct node { int key; };
struct list { node* head OBASE_GUIDED; };
struct session { int id; list items; };
// CHECK: error: 'session' with the marked field 'list::head' is copied as a whole{{.*}}[obase:struct-copy]
session* duplicate(const session& s) { return new session(s); }
