// SPDX-License-Identifier: MIT
//
// A sorted list under a lock, shared by threads: the link to be changed is found by a function that
// returns the address of a marked field. Its destructor leaves the address of what it has freed in the
// head, which ends only after the destructor's body, and now and then late.
#include "forcing.hpp"

#include <obase/marked.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

// Ends late if wanted.
struct late_end {
    explicit late_end(bool is_wanted) : wanted(is_wanted) {}
    ~late_end() {
        if (wanted) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
    bool wanted;
};

// An aggregate whose destructor does the same.
struct holder {
    struct record {
        std::uint64_t key;
        std::uint64_t more[2];
    };
    record* held OBASE_GUIDED = nullptr;
    late_end ends{false};

    OBASE_ENTRY void hold(std::uint64_t key) { held = new record{key, {}}; }
    OBASE_ENTRY std::uint64_t key() const { return held->key; }
    OBASE_ENTRY ~holder() { delete held; }
};

class sorted_list {
  public:
    explicit sorted_list(bool ends_late = false) : ends_(ends_late) {}
    OBASE_ENTRY ~sorted_list() {
        for (node* at = head_; at != nullptr;) {
            node* next = at->next;
            delete at;
            at = next;
        }
    }

    OBASE_ENTRY bool insert(std::uint64_t key, std::uint64_t value) {
        const std::lock_guard guard(lock_);
        node** link = find(key);
        if (*link != nullptr && (*link)->key == key) return false;
        *link = new node(key, value, *link);
        return true;
    }
    OBASE_ENTRY bool erase(std::uint64_t key) {
        const std::lock_guard guard(lock_);
        node** link = find(key);
        node* found = *link;
        if (found == nullptr || found->key != key) return false;
        *link = found->next;
        delete found;
        return true;
    }
    OBASE_ENTRY std::uint64_t value_of(std::uint64_t key) const {
        const std::lock_guard guard(lock_);
        const node* found = first_from(key);
        return found != nullptr && found->key == key ? found->value : 0;
    }
    // Takes each node out and puts it back at the front.
    OBASE_ENTRY void reverse() {
        const std::lock_guard guard(lock_);
        node* rest = std::exchange(head_, nullptr);
        while (rest != nullptr) {
            node* next = rest->next;
            rest->next = head_;
            head_ = rest;
            rest = next;
        }
    }
    OBASE_ENTRY bool empty() const {
        const std::lock_guard guard(lock_);
        return head_ == nullptr;
    }
    OBASE_ENTRY std::uint64_t sum() const {
        const std::lock_guard guard(lock_);
        std::uint64_t total = 0;
        std::uint64_t place = 0;
        for (const node* at = head_; at != nullptr; at = at->next)
            total += ++place * (at->key ^ at->value);
        return total;
    }

  private:
    struct node {
        OBASE_INTERNAL node(std::uint64_t k, std::uint64_t v, node* n)
            : key(k), value(v), next(n) {}
        std::uint64_t key;
        std::uint64_t value;
        node* next OBASE_GUIDED;
    };

    OBASE_INTERNAL node** find(std::uint64_t key) {
        node** link = &head_;
        while (*link != nullptr && (*link)->key < key) link = &(*link)->next;
        return link;
    }
    OBASE_INTERNAL const node* first_from(std::uint64_t key) const {
        const node* at = head_;
        while (at != nullptr && at->key < key) at = at->next;
        return at;
    }

    node* head_ OBASE_GUIDED = nullptr;
    mutable std::mutex lock_;
    late_end ends_;
};

std::uint64_t next_random(std::uint64_t& state) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return state >> 33;
}

// Keys of different threads are different, so each thread sees what it would see alone.
std::uint64_t work(sorted_list& list, std::uint64_t thread, std::uint64_t threads) {
    std::uint64_t state = thread;
    std::uint64_t seen = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::uint64_t key = next_random(state) % 100 * threads + thread;
        switch (next_random(state) % 3) {
        case 0:
            seen = seen * 31 + list.insert(key, key * key + 1);
            break;
        case 1:
            seen = seen * 31 + list.erase(key);
            break;
        default:
            seen = seen * 31 + list.value_of(key);
        }
    }
    return seen;
}

int main() {
    begin_forcing();
    constexpr std::uint64_t threads = 3;
    sorted_list list;
    std::uint64_t seen[threads] = {};
    std::vector<std::thread> all;
    for (std::uint64_t t = 0; t < threads; ++t)
        all.emplace_back([&, t] { seen[t] = work(list, t, threads); });
    for (std::thread& t : all) t.join();
    for (const std::uint64_t s : seen) std::printf("%llu\n", static_cast<unsigned long long>(s));
    for (int i = 0; i < 5; ++i) {
        std::printf("%llu\n", static_cast<unsigned long long>(list.sum()));
        list.reverse();
        wait_for_windows();
    }
    std::printf("%d\n", list.empty());
    {
        // In memory of its own, and in a frame that comes and goes.
        const auto other = std::make_unique<sorted_list>();
        for (std::uint64_t i = 0; i < 1000; ++i) {
            sorted_list local(i % 8 == 0);
            local.insert(i, i);
            other->insert(i * 7 % 1000, i + local.value_of(i));
        }
        wait_for_windows();
        std::printf("%llu\n", static_cast<unsigned long long>(other->sum()));
    }
    {
        std::vector<std::unique_ptr<holder>> kept;
        for (std::uint64_t i = 0; i < 1000; ++i) {
            holder local{nullptr, late_end(i % 8 == 0)};
            local.hold(i);
            kept.push_back(std::make_unique<holder>());
            kept.back()->hold(local.key());
        }
        std::uint64_t total = 0;
        for (std::uint64_t i = 0; i < 1000; ++i) total += i * kept[i]->key();
        std::printf("%llu\n", static_cast<unsigned long long>(total));
    }
    end_forcing();
}
