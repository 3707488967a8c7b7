// SPDX-License-Identifier: MIT
//
// A hash table whose chains grow without a lock, by compare-exchange on std::atomic fields, and whose
// values are exchanged as wholes. Threads share chains; each has keys of its own.
#include "forcing.hpp"

#include <obase/marked.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

class table {
  public:
    OBASE_ENTRY explicit table(std::size_t buckets)
        : buckets_(std::make_unique<bucket[]>(buckets)), count_(buckets) {}
    OBASE_ENTRY ~table() {
        for (std::size_t i = 0; i < count_; ++i)
            for (node* at = buckets_[i].first.load(); at != nullptr;) {
                node* next = at->next.load(std::memory_order_relaxed);
                delete at->content.load();
                delete at;
                at = next;
            }
    }

    // True if the key is new.
    OBASE_ENTRY bool put(std::uint64_t key, std::uint64_t a, std::uint64_t b) {
        std::atomic<node*>& first = buckets_[key % count_].first;
        if (node* known = find(key)) {
            delete known->content.exchange(new value{a, b, a ^ b});
            return false;
        }
        node* fresh = new node(key, new value{a, b, a ^ b});
        node* head = first.load(std::memory_order_acquire);
        do {
            fresh->next.store(head, std::memory_order_relaxed);
        } while (!first.compare_exchange_weak(head, fresh, std::memory_order_acq_rel));
        return true;
    }
    OBASE_ENTRY std::uint64_t get(std::uint64_t key) const {
        const node* found = find(key);
        if (found == nullptr) return 0;
        const value* v = found->content.load(std::memory_order_acquire);
        return (v->a ^ v->b) == v->check ? v->a * 3 + v->b : ~std::uint64_t{0};
    }
    OBASE_ENTRY std::size_t longest_chain() const {
        std::size_t most = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            std::size_t length = 0;
            for (const node* at = buckets_[i].first; at != nullptr; at = at->next) ++length;
            most = length > most ? length : most;
        }
        return most;
    }

  private:
    struct value {
        std::uint64_t a;
        std::uint64_t b;
        std::uint64_t check;
    };
    struct node {
        OBASE_INTERNAL node(std::uint64_t k, value* v) : key(k), content(v), next(nullptr) {}
        const std::uint64_t key;
        std::atomic<value*> content OBASE_GUIDED;
        std::atomic<node*> next OBASE_GUIDED;
    };
    struct bucket {
        std::atomic<node*> first OBASE_GUIDED = nullptr;
    };

    OBASE_INTERNAL node* find(std::uint64_t key) const {
        node* at = buckets_[key % count_].first.load(std::memory_order_acquire);
        while (at != nullptr && at->key != key) at = at->next.load(std::memory_order_acquire);
        return at;
    }

    std::unique_ptr<bucket[]> buckets_;
    std::size_t count_;
};

std::uint64_t work(table& shared, std::uint64_t thread, std::uint64_t threads) {
    std::uint64_t state = thread;
    std::uint64_t seen = 0;
    for (int i = 0; i < 20000; ++i) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        const std::uint64_t random = state >> 33;
        const std::uint64_t key = random % 1000 * threads + thread;
        if (random / 1000 % 3 == 0)
            seen = seen * 31 + shared.put(key, random, key);
        else
            seen = seen * 31 + shared.get(key);
    }
    return seen;
}

int main() {
    begin_forcing();
    constexpr std::uint64_t threads = 3;
    table shared(256);
    std::uint64_t seen[threads] = {};
    std::vector<std::thread> all;
    for (std::uint64_t t = 0; t < threads; ++t)
        all.emplace_back([&, t] { seen[t] = work(shared, t, threads); });
    for (std::thread& t : all) t.join();
    for (const std::uint64_t s : seen) std::printf("%llu\n", static_cast<unsigned long long>(s));
    std::printf("%zu\n", shared.longest_chain());
    wait_for_windows();
    for (std::uint64_t t = 0; t < threads; ++t)
        std::printf("%llu\n", static_cast<unsigned long long>(work(shared, t, threads)));
    end_forcing();
}
