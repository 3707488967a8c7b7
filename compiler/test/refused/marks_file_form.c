// SPDX-License-Identifier: MIT
// RUN: rm -rf %t && mkdir %t && echo "just_a_name" > %t/marks
// RUN: not %obase-clang --obase-marks=%t/marks -c %s -o %t/o 2>&1 | %filecheck %s
// CHECK: error: obase_visibility: {{.*}}marks:1: not of the form struct::field: 'just_a_name'
int nothing;
