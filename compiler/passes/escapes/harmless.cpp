// SPDX-License-Identifier: MIT
//
// What an operation may do: nothing here is refused (clang's -verify).
// expected-no-diagnostics
#include <obase/marked.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

struct node {
    node* next OBASE_GUIDED = nullptr;
    std::atomic<node*> link OBASE_GUIDED = nullptr;
    char* text OBASE_GUIDED = nullptr;
    node* child[2] OBASE_GUIDED = {};
    std::uint64_t key = 0;
    std::uint64_t values[4] = {};
};

template <class Use>
void for_each(node* at, Use&& use) {
    for (; at != nullptr; at = at->next) use(*at);
}

class list {
  public:
    OBASE_ENTRY ~list() {
        while (head_ != nullptr) delete std::exchange(head_, static_cast<node*>(head_->next));
    }
    OBASE_ENTRY std::uint64_t copy_of_key() { return head_->key; }
    OBASE_ENTRY bool has(std::uint64_t key) const { return find(key) != nullptr; }
    OBASE_ENTRY std::string copy_of_text() const { return head_->text; }
    OBASE_ENTRY std::uint64_t indexed_inside(int i) const { return head_->values[i]; }
    OBASE_ENTRY char byte_of_text(int i) const { return head_->text[i]; }
    OBASE_ENTRY std::size_t length_of_text() const { return std::strlen(head_->text); }
    OBASE_ENTRY bool same(const list& other) const { return head_ == other.head_; }
    OBASE_ENTRY std::uint64_t local_array() {
        node* some[4] = {};
        int count = 0;
        for (node* at = head_; at != nullptr && count < 4; at = at->next) some[count++] = at;
        std::uint64_t sum = 0;
        for (int i = 0; i < count; ++i) sum += some[i]->key;
        return sum;
    }
    OBASE_ENTRY std::uint64_t local_struct() {
        struct position {
            node* at;
            std::uint64_t place;
        };
        position p{head_, 0};
        while (p.at != nullptr) p = {p.at->next, p.place + 1};
        return p.place;
    }
    OBASE_ENTRY std::pair<bool, std::uint64_t> key_if_any() {
        const auto [found, at] = find_with_place(3);
        return {found != nullptr, at};
    }
    OBASE_ENTRY std::uint64_t by_closure() {
        std::uint64_t sum = 0;
        for_each(head_, [&](const node& n) { sum += n.key; });
        return sum;
    }
    OBASE_ENTRY void through_an_out_parameter() {
        node* found = nullptr;
        find_into(3, &found);
        if (found != nullptr) found->key = 4;
    }
    OBASE_ENTRY void swap_fields(list& other) { std::swap(head_, other.head_); }
    OBASE_ENTRY void by_reference() {
        node*& head = head_;
        head = new node{.next = head};
    }
    OBASE_ENTRY void unlink_first() {
        if (node* first = head_) {
            head_ = first->next;
            delete first;
        }
    }
    OBASE_ENTRY void last_of_many() {
        node** link = &head_;
        while (*link != nullptr) link = &(*link)->next;
        *link = new node;
    }
    OBASE_ENTRY void text(const char* from) {
        std::free(head_->text);
        const std::size_t bytes = std::strlen(from) + 1;
        head_->text = static_cast<char*>(std::malloc(bytes));
        std::memcpy(head_->text, from, bytes);
    }
    OBASE_ENTRY void print() const { std::printf("%d\n", static_cast<int>(head_->key)); }
    OBASE_ENTRY void children() {
        for (node*& child : head_->child) child = new node;
        std::swap(head_->child[0], head_->child[1]);
    }
    OBASE_ENTRY bool atomics() {
        node* fresh = new node;
        node* seen = head_->link.load(std::memory_order_acquire);
        if (head_->link.compare_exchange_strong(seen, fresh)) return true;
        delete fresh;
        delete head_->link.exchange(nullptr);
        return false;
    }
    OBASE_ENTRY void throws(bool yes) {
        const std::lock_guard guard(lock_);
        head_ = new node;
        if (yes) throw std::runtime_error("as asked");
    }
    OBASE_ENTRY void static_sentinel() {
        static node sentinel;
        head_ = &sentinel;
    }
    OBASE_ENTRY const char* name_of_first() const { return head_ == nullptr ? "none" : "some"; }

  private:
    OBASE_INTERNAL node* find(std::uint64_t key) const {
        node* at = head_;
        while (at != nullptr && at->key != key) at = at->next;
        return at;
    }
    OBASE_INTERNAL std::pair<node*, std::uint64_t> find_with_place(std::uint64_t key) const {
        std::uint64_t place = 0;
        node* at = head_;
        for (; at != nullptr && at->key != key; at = at->next) ++place;
        return {at, place};
    }
    OBASE_INTERNAL void find_into(std::uint64_t key, node** result) const { *result = find(key); }

    node* head_ OBASE_GUIDED = nullptr;
    std::mutex lock_;
};

void use_all(list& l, list& other) {
    (void)l.copy_of_key();
    (void)l.has(1);
    (void)l.copy_of_text();
    (void)l.indexed_inside(1);
    (void)l.byte_of_text(1);
    (void)l.length_of_text();
    (void)l.same(other);
    (void)l.local_array();
    (void)l.local_struct();
    (void)l.key_if_any();
    (void)l.by_closure();
    l.through_an_out_parameter();
    l.swap_fields(other);
    l.by_reference();
    l.unlink_first();
    l.last_of_many();
    l.text("text");
    l.print();
    l.children();
    (void)l.atomics();
    l.throws(false);
    l.static_sentinel();
    (void)l.name_of_first();
    const auto owned = std::make_unique<list>();
}
