// SPDX-License-Identifier: MIT
// Two sources with a header, a marks file, a compilation database. Marks from outside need nothing in
// the source; headers without changes come along.
// RUN: rm -rf %t && mkdir -p %t && cp -r %S/inputs/project %t/project
// RUN: sed s!@DIRECTORY@!%t!g %S/inputs/project/commands.json.in > %t/compile_commands.json
// RUN: %rewrite --out=%t/out --root=%t/project --marks=%t/project/stack.marks -p %t %t/project/src/stack.cpp %t/project/src/main.cpp
// RUN: %filecheck --match-full-lines %s < %t/out/include/stack.hpp
// CHECK: /* Made by obase-rewrite from include/stack.hpp. */
// CHECK: #line 1 "include/stack.hpp"
// CHECK:     void push(word w);
// CHECK:     word pop() { OBASE_OPERATION;
// CHECK:         obase_slot_store(top_, obase_slot_load(top->below));
// CHECK:     struct node { OBASE_MANAGED_NEW OBASE_SLOTTED_CLASS
// CHECK:         OBASE_SLOT(node*) below;
// RUN: cmp %t/out/include/word.hpp %t/project/include/word.hpp
// RUN: cmp %t/out/src/main.cpp %t/project/src/main.cpp
// RUN: %plain-clang++ -I %t/out/include -c %t/out/src/stack.cpp -o %t/stack.o
// RUN: %plain-gcc++ -I %t/out/include -c %t/out/src/main.cpp -o %t/main.o
// RUN: %filecheck --check-prefix=STACK --match-full-lines %s < %t/out/src/stack.cpp
// STACK: void stack::push(word w) { OBASE_OPERATION; obase_slot_store(top_, new (obase_managed) node{w, obase_slot_load(top_)}); }

// For those who keep it: no #line, scopes on lines of their own.
// RUN: %rewrite --out=%t/kept --no-lines --root=%t/project --marks=%t/project/stack.marks -p %t %t/project/src/stack.cpp
// RUN: not grep -r '#line' %t/kept
// RUN: %filecheck --check-prefix=KEPT --match-full-lines %s < %t/kept/include/stack.hpp
// KEPT:     word pop() {
// KEPT-NEXT:         OBASE_OPERATION;
// KEPT-NEXT:         node* top = obase_slot_load(top_);
