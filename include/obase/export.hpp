// SPDX-License-Identifier: MIT
//
// How a name of the library is seen from a program that links it: the export macro and the model of
// thread-local variables. Preprocessor only, so that obase.h may include it from C.
//
// The library is compiled with -fvisibility=hidden: a function, a variable or a class with
// out-of-line members is in libobase.so for others only if it is marked. Templates and inline
// functions need no mark; internal functions, which tests reach through libobase.a, get none.
//
//     OBASE_EXPORT void collect_now();
//     class OBASE_EXPORT runtime { ... };
//     extern OBASE_EXPORT OBASE_TLS constinit thread_local scope_slot* my_slot;
//
// OBASE_TLS gives a thread-local variable of a public header the initial-exec model, whatever flags
// the program is compiled with: one load from the GOT and one from %fs, no __tls_get_addr. The
// price: a program that loads libobase.so by dlopen takes the few bytes from glibc's static TLS
// reserve. constinit is part of the idiom; without it g++ calls an initialization wrapper each
// time.
#pragma once

#define OBASE_EXPORT __attribute__((visibility("default")))
#define OBASE_TLS __attribute__((tls_model("initial-exec")))
