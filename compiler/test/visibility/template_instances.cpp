// SPDX-License-Identifier: MIT
// RUN: %obase-clang++ -c -O0 --obase-visibility=%t.txt -o %t.o %s
// RUN: %filecheck --input-file=%t.txt %s
#include "marks.h"
template <class T> class box {
  public:
    void set(const T& value) {
        delete held_;
        held_ = new T(value);
    }
    bool full() const;
  private:
    T* held_ OBASE_GUIDED = nullptr;
};
template <class T> bool box<T>::full() const { return held_ != nullptr; }
template <class T> bool full(const box<T>& b) { return b.full(); }
bool use(box<int>& a, box<long>& b) {
    a.set(1);
    b.set(2);
    return full(a) && b.full();
}
// CHECK-DAG: mark	box<int>::held_
// CHECK-DAG: mark	box<long>::held_
// CHECK-DAG: entry	box<int>::set(const int &)	_ZN3boxIiE3setERKi
// CHECK-DAG: entry	box<long>::set(const long &)	_ZN3boxIlE3setERKl
// CHECK-DAG: entry	box<int>::full()	_ZNK3boxIiE4fullEv
// CHECK-DAG: entry	box<long>::full()	_ZNK3boxIlE4fullEv
