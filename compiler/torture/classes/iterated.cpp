// SPDX-License-Identifier: MIT
//
// right: an iterator within the operations of the class, which calls a function object.
#include "torture.h"
template <typename T>
class bag {
    struct node {
        T value;
        node* next OBASE_GUIDED;
    };
    class iterator {
      public:
        explicit iterator(node* at) : at_(at) {}
        T& operator*() const { return at_->value; }
        iterator& operator++() {
            at_ = at_->next;
            return *this;
        }
        bool operator!=(const iterator& other) const { return at_ != other.at_; }

      private:
        node* at_;
    };
    iterator begin() const { return iterator(head_); }
    iterator end() const { return iterator(nullptr); }
    node* head_ OBASE_GUIDED = nullptr;

  public:
    void add(const T& value) { head_ = new node{value, head_}; }
    template <typename F>
    void each(F f) const {
        for (auto i = begin(); i != end(); ++i) f(*i);
    }
};
int main() {
    bag<long> b;
    for (long i = 0; i < 50; ++i) b.add(i);
    settle();
    long sum = 0;
    b.each([&sum](long v) { sum += v; });
    settle();
    b.each([](long& v) { v += 1; });
    b.each([&sum](long v) { sum += v; });
    std::printf("%ld\n", sum);
}
