// SPDX-License-Identifier: MIT
// RUN: %obase-clang --obase-show -c %s -o %t.o | %filecheck --check-prefix=COMPILE %s
// RUN: %obase-clang --obase-show %s -o %t | %filecheck --check-prefix=LINK %s
// RUN: %obase-clang --obase-show --obase-static %s -o %t | %filecheck --check-prefix=STATIC %s
// RUN: %obase-clang --obase-show --obase-marks=some/file -x c - | %filecheck --check-prefix=MARKS %s
// RUN: %obase-clang --obase-show -v | %filecheck --check-prefix=NOTHING %s
// RUN: %obase-clang --obase-show -x c-header %s -o %t.pch | %filecheck --check-prefix=NOTHING %s
// RUN: %obase-clang --obase-show -xc-header %s -o %t.pch | %filecheck --check-prefix=NOTHING %s
// RUN: %obase-clang --obase-show -include-pch %t.pch | %filecheck --check-prefix=NOTHING %s
// RUN: not %obase-clang --obase-mark=some/file 2>&1 | %filecheck --check-prefix=WRONG %s
// RUN: %obase-clang --help | %filecheck --check-prefix=HELP %s
// RUN: not %obase-clang -fsanitize=undefined,thread %s -o %t 2>&1 | %filecheck --check-prefix=THREADS %s
// RUN: %obase-clang --obase-show -fsanitize=thread --obase-library=some/libobase.a %s -o %t | %filecheck --check-prefix=LIBRARY %s
// RUN: %obase-clang -fsanitize=thread -c %s -o %t.o
// RUN: %obase-clang %s -o %t && %t
// RUN: %obase-clang --obase-static %s -o %t && %t
// COMPILE: -fplugin={{.*}}obase_visibility.so
// COMPILE-NOT: -lobase
// LINK: driver.c {{.*}}-lobase
// STATIC-NOT: -lobase
// STATIC: libobase.a
// MARKS: -fplugin-arg-obase_visibility-marks=some/file {{.*}}-x c - -x none {{.*}}-lobase
// NOTHING-NOT: -lobase
// HELP: obase-clang: clang
// HELP: --obase-marks=FILE
// HELP: --handles
// HELP: OVERVIEW: clang
// WRONG: '--obase-mark=some/file' is none of
// THREADS: '-fsanitize=undefined,thread' needs a library that is built with it
// LIBRARY-NOT: -lobase
// LIBRARY: driver.c {{.*}}some/libobase.a
#include "marks.h"
struct node { int key; };
struct list { struct node* head OBASE_GUIDED; };
static int empty(const struct list* l) { return l->head == 0; }
int main(void) {
    static struct list l;
    return empty(&l) ? 0 : 1;
}
