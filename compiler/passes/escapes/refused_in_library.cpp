// SPDX-License-Identifier: MIT
//
// As refused.cpp, where the place of the error is in the library's header: containers, threads and
// functions keep what they are given in memory of their own.
// expected-error@*:* 4+ {{kept in memory that outlives the operation}}
#include <obase/marked.h>

#include <functional>
#include <thread>
#include <vector>

struct node {
    node* next OBASE_GUIDED = nullptr;
    int key = 0;
};

std::vector<node*> kept_nodes;
std::function<int()> kept_function;

class list {
  public:
    OBASE_ENTRY void container() { kept_nodes.push_back(head_); }
    OBASE_ENTRY void closure() {
        kept_function = [at = head_, a = this, b = this, c = this] {
            return at->key + (a == b) + (b == c);
        };
    }
    OBASE_ENTRY void thread() {
        std::thread([at = head_] { at->key = 1; }).join();
    }
    OBASE_ENTRY void heap() { delete new held{head_}; }

  private:
    struct held {
        node* at;
    };
    node* head_ OBASE_GUIDED = nullptr;
};

void use_all(list& l) {
    l.container();
    l.closure();
    l.thread();
    l.heap();
}
