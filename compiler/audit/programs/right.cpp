// SPDX-License-Identifier: MIT
//
// Right in every way, with what an audit has to live with: threads, a fork whose child goes on, exceptions, frees of
// whole lists, objects with objects in them, large ones and aligned ones.
//
// STATUS: 0
// EXPECT: 0 errors
// MOVED: 50
#include <obase/marked.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

class tree {
  public:
    void insert(long key) {
        node** at = &root_;
        while (*at != nullptr) at = key < (*at)->key ? &(*at)->less : &(*at)->more;
        *at = new node{key, nullptr, nullptr, std::make_unique<large>()};
        (*at)->body->bytes[9000] = static_cast<char>(key);
    }
    bool has(long key) const {
        for (node* n = root_; n != nullptr; n = key < n->key ? n->less : n->more)
            if (n->key == key) {
                if (n->body->bytes[9000] != static_cast<char>(key)) std::abort();
                return true;
            }
        return false;
    }
    long demand(long key) const {
        if (!has(key)) throw std::out_of_range("no such key");
        return key;
    }
    void clear() {
        end(root_);
        root_ = nullptr;
    }
    ~tree() { clear(); }

  private:
    struct large {
        alignas(64) char bytes[20000];
    };
    struct node {
        long key;
        node* less OBASE_GUIDED;
        node* more OBASE_GUIDED;
        std::unique_ptr<large> body OBASE_GUIDED;
    };
    static void end(node* n) {
        if (n == nullptr) return;
        end(n->less);
        end(n->more);
        delete n;
    }
    node* root_ OBASE_GUIDED = nullptr;
};

static long work(unsigned seed) {
    tree t;
    long found = 0;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < 60; ++i) t.insert((seed = seed * 1103515245 + 12345) % 1000);
        for (long key = 0; key < 1000; ++key) {
            try {
                found += t.demand(key);
            } catch (const std::out_of_range&) {
            }
        }
        t.clear();
    }
    return found;
}

int main() {
    std::vector<std::thread> threads;
    std::vector<long> results(3);
    for (unsigned i = 0; i < 3; ++i) threads.emplace_back([&results, i] { results[i] = work(i); });
    for (std::thread& t : threads) t.join();
    const pid_t child = fork();
    const long alone = work(7);
    if (child == 0) return alone > 0 ? 0 : 1; // with a report of its own
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("%ld %ld %d\n", results[0] + results[1] + results[2], alone, status);
}
