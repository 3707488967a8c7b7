// SPDX-License-Identifier: MIT
//
// A treap in one thread: recursive functions that take references to marked fields, that take and
// return addresses of nodes, and that leave a node in two fields for a moment.
#include "forcing.hpp"

#include <obase/marked.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

class treap {
  public:
    treap() = default;
    OBASE_ENTRY ~treap() { destroy(root_); }

    OBASE_ENTRY bool insert(std::uint64_t key) {
        if (contains(key)) return false;
        insert_below(root_, key);
        ++size_;
        return true;
    }
    OBASE_ENTRY bool erase(std::uint64_t key) {
        const bool erased = erase_below(root_, key);
        size_ -= erased;
        return erased;
    }
    OBASE_ENTRY bool contains(std::uint64_t key) const {
        const node* at = root_;
        while (at != nullptr && at->key != key) at = at->child[key > at->key];
        return at != nullptr && std::strtoull(at->text, nullptr, 10) == key;
    }
    // All keys below `key` leave the tree.
    OBASE_ENTRY std::size_t erase_below_key(std::uint64_t key) {
        node* low = nullptr;
        node* high = nullptr;
        split(std::exchange(root_, nullptr), key, low, high);
        root_ = high;
        const std::size_t gone = count(low);
        destroy(low);
        size_ -= gone;
        return gone;
    }
    OBASE_ENTRY std::uint64_t digest() const { return digest(root_, 0); }
    std::size_t size() const { return size_; }

  private:
    struct node {
        std::uint64_t key;
        std::uint64_t priority;
        char* text OBASE_GUIDED; // of the key, on malloc
        node* child[2] OBASE_GUIDED;
    };

    OBASE_INTERNAL static node* make(std::uint64_t key) {
        node* fresh = new node;
        fresh->key = key;
        fresh->priority = key * 0x9E3779B97F4A7C15U;
        fresh->child[0] = fresh->child[1] = nullptr;
        char digits[32];
        std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(key));
        char* text = static_cast<char*>(std::malloc(std::strlen(digits) + 1));
        std::strcpy(text, digits);
        fresh->text = text;
        return fresh;
    }
    OBASE_INTERNAL static void rotate(node*& at, int side) {
        node* up = at->child[side];
        at->child[side] = up->child[1 - side];
        up->child[1 - side] = at;
        at = up;
    }
    OBASE_INTERNAL static void insert_below(node*& at, std::uint64_t key) {
        if (at == nullptr) {
            at = make(key);
            return;
        }
        const int side = key > at->key;
        insert_below(at->child[side], key);
        if (at->child[side]->priority > at->priority) rotate(at, side);
    }
    OBASE_INTERNAL static bool erase_below(node*& at, std::uint64_t key) {
        if (at == nullptr) return false;
        if (at->key != key) return erase_below(at->child[key > at->key], key);
        node* gone = at;
        at = merge(gone->child[0], gone->child[1]);
        free_node(gone);
        return true;
    }
    OBASE_INTERNAL static node* merge(node* low, node* high) {
        if (low == nullptr) return high;
        if (high == nullptr) return low;
        if (low->priority > high->priority) {
            low->child[1] = merge(low->child[1], high);
            return low;
        }
        high->child[0] = merge(low, high->child[0]);
        return high;
    }
    OBASE_INTERNAL static void split(node* at, std::uint64_t key, node*& low, node*& high) {
        if (at == nullptr) {
            low = high = nullptr;
            return;
        }
        node* rest = nullptr;
        if (at->key < key) {
            split(at->child[1], key, rest, high);
            at->child[1] = rest;
            low = at;
        } else {
            split(at->child[0], key, low, rest);
            at->child[0] = rest;
            high = at;
        }
    }
    OBASE_INTERNAL static void free_node(node* gone) {
        std::free(gone->text);
        delete gone;
    }
    OBASE_INTERNAL static void destroy(node* at) {
        if (at == nullptr) return;
        destroy(at->child[0]);
        destroy(at->child[1]);
        free_node(at);
    }
    OBASE_INTERNAL static std::size_t count(const node* at) {
        return at == nullptr ? 0 : 1 + count(at->child[0]) + count(at->child[1]);
    }
    OBASE_INTERNAL static std::uint64_t digest(const node* at, std::uint64_t depth) {
        if (at == nullptr) return depth;
        return digest(at->child[0], depth + 1) * 31 + at->key * 7 +
               digest(at->child[1], depth + 1) * 17 + static_cast<std::uint64_t>(at->text[0]);
    }

    node* root_ OBASE_GUIDED = nullptr;
    std::size_t size_ = 0;
};

int main() {
    begin_forcing();
    for (int round = 0; round < 3; ++round) {
        treap tree;
        std::uint64_t state = 12345;
        const auto next = [&state] {
            state = state * 6364136223846793005U + 1442695040888963407U;
            return state >> 33;
        };
        std::uint64_t seen = 0;
        for (int i = 0; i < 20000; ++i) {
            const std::uint64_t key = next() % 3000;
            switch (next() % 4) {
            case 0:
            case 1:
                seen = seen * 31 + tree.insert(key);
                break;
            case 2:
                seen = seen * 31 + tree.erase(key);
                break;
            default:
                seen = seen * 31 + tree.contains(key);
            }
            if (i % 5000 == 4999) seen = seen * 31 + tree.erase_below_key(next() % 1500);
        }
        (void)tree.digest();
        wait_for_windows();
        std::printf("%llu %zu %llu\n", static_cast<unsigned long long>(seen), tree.size(),
                    static_cast<unsigned long long>(tree.digest()));
    }
    end_forcing();
}
