// SPDX-License-Identifier: MIT
// What is wrong with the command line has status 2, what is wrong with the program has status 1.
// RUN: %rewrite --help | %filecheck --check-prefix=HELP %s
// HELP: Usage: obase-rewrite --out=DIRECTORY
// RUN: sh -c "%rewrite %s -- -std=c++20; echo status $?" 2>&1 | %filecheck --check-prefix=NO-OUT %s
// NO-OUT: obase-rewrite: --out=DIRECTORY is missing
// NO-OUT: status 2
// RUN: sh -c "%rewrite --out=%t --wrong %s -- -std=c++20; echo status $?" 2>&1 | %filecheck --check-prefix=WRONG %s
// WRONG: obase-rewrite: '--wrong' is none of --out=
// WRONG: status 2
// RUN: sh -c "%rewrite --out=%t --protocol=ATC %s -- -std=c++20; echo status $?" 2>&1 | %filecheck --check-prefix=PROTOCOL %s
// PROTOCOL: obase-rewrite: '--protocol=ATC' names no protocol; there are arming and atc
// PROTOCOL: status 2
// RUN: sh -c "%rewrite --out=%t %s; echo status $?" 2>&1 | %filecheck --check-prefix=NO-COMMAND %s
// NO-COMMAND: obase-rewrite: neither compiler arguments behind -- nor -p
// NO-COMMAND: status 2
// RUN: sh -c "%rewrite --out=%t --marks=%t.none %s --; echo status $?" 2>&1 | %filecheck --check-prefix=NO-MARKS %s
// NO-MARKS: .none: No such file or directory
// NO-MARKS: status 1
// RUN: sh -c "%rewrite --out=%t --root=%S/inputs %s -- -std=c++20; echo status $?" 2>&1 | %filecheck --check-prefix=ROOT %s
// ROOT: usage.cpp: is not below
// ROOT: status 1
// RUN: not ls %t
int main() {}
