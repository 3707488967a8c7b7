// SPDX-License-Identifier: MIT
// Marked fields in a module are refused where it is compiled and where it is imported; other
// modules are not.
// RUN: not %obase-clang++ -Wno-unused-command-line-argument -DMARKED -x c++-module -c -o %t.o %s 2>&1 | %filecheck %s
// RUN: %plain-clang++ -DMARKED -x c++-module --precompile -o %t.pcm %s
// RUN: not %obase-clang++ -Wno-unused-command-line-argument -c -o %t.o %t.pcm 2>&1 | %filecheck %s
// RUN: not %obase-clang++ -DIMPORTS -fmodule-file=m=%t.pcm -c -o %t.o %s 2>&1 | %filecheck %s
// RUN: %obase-clang++ -Wno-unused-command-line-argument -x c++-module -c -fmodule-output=%t.pcm -o %t.o %s
// RUN: %obase-clang++ -Wno-unused-command-line-argument -c -o %t.o %t.pcm
// RUN: %obase-clang++ -DIMPORTS -fmodule-file=m=%t.pcm -c -o %t.o %s
#ifdef IMPORTS
import m;
int use(const list& l) { return l.empty() ? 0 : l.count(); }
#else
module;
#include <vector>
export module m;
struct node { int key; };
export class list {
  public:
    list() : all_(2) {}
    bool empty() const { return head_ == nullptr; }
    int count() const;
  private:
#ifdef MARKED
    // CHECK: module.cpp:[[#@LINE+1]]:{{.*}}error: the marked field 'list::head_' is part of a module, which cannot be compiled with obase [obase:module]
    node* head_ [[clang::annotate("obase::guided")]] = nullptr;
#else
    node* head_ = nullptr;
#endif
    std::vector<int> all_;
};
int list::count() const { return head_ == nullptr ? static_cast<int>(all_.size()) : head_->key; }
#endif
