// SPDX-License-Identifier: MIT
//
// What an operation may not do with the address of a managed object: each line has the error that it
// must get, and no other line may get one (clang's -verify).
// clang-format off: an expectation belongs to the line it stands on.
#include <obase/marked.h>

#include <cstdarg>
#include <cstdint>
#include <cstdlib>

struct node {
    node* next OBASE_GUIDED = nullptr;
    node* back = nullptr;
    std::uint64_t key = 0;
    std::uint64_t values[4] = {};
};

node* last_found = nullptr;
std::uint64_t hashes[16];
void take_values(int count, ...) {
    va_list nodes;
    va_start(nodes, count);
    hashes[0] = va_arg(nodes, node*)->key;
    va_end(nodes);
}

class list {
  public:
    OBASE_ENTRY node* first() {
        return head_; // expected-error {{an operation returns the address of a managed object}}
    }
    OBASE_ENTRY std::uint64_t* first_key() {
        return &head_->key; // expected-error {{an operation returns the address of a managed object}}
    }
    OBASE_ENTRY node* made() {
        node* fresh = new node;
        head_ = fresh;
        return fresh; // expected-error {{an operation returns the address of a managed object}}
    }
    OBASE_ENTRY node* through_a_helper() {
        return find(3); // expected-error {{an operation returns the address of a managed object}}
    }
    OBASE_ENTRY void global() {
        last_found = head_; // expected-error {{stored into a global variable}}
    }
    OBASE_ENTRY void unmarked_field() {
        head_->back = head_->next; // expected-error {{kept in memory that outlives the operation}}
    }
    OBASE_ENTRY void own_unmarked_field() {
        cursor_ = head_; // expected-error {{stores the address of a managed object into its caller's}}
    }
    OBASE_ENTRY void heap() {
        auto** kept = static_cast<node**>(std::malloc(sizeof(node*)));
        *kept = head_; // expected-error {{kept in memory that outlives the operation}}
        other_ = kept;
    }
    OBASE_ENTRY void out_parameter(node** result) {
        *result = head_; // expected-error {{stores the address of a managed object into its caller's}}
    }
    OBASE_ENTRY void integer() {
        const auto number = reinterpret_cast<std::uintptr_t>(head_);
        hashes[(number >> 4) % 16] += 1; // expected-error {{computed with as a number}}
    }
    OBASE_ENTRY void neighbour() {
        head_ = head_ + 1; // expected-error {{an address inside of a managed object is stored}}
    }
    OBASE_ENTRY void interior() {
        // expected-error@+1 {{an address inside of a managed object is stored into a marked field}}
        head_ = reinterpret_cast<node*>(&head_->values[1]);
    }
    OBASE_ENTRY void assembly() {
        node* at = head_;
        asm volatile("" : : "r"(at)); // expected-error {{handed to inline assembly}}
    }
    OBASE_ENTRY void varargs() {
        take_values(1, head_); // expected-error {{variable arguments of}}
    }

  private:
    OBASE_INTERNAL node* find(std::uint64_t key) {
        node* at = head_;
        while (at != nullptr && at->key != key) at = at->next;
        return at;
    }
    node* head_ OBASE_GUIDED = nullptr;
    node* cursor_ = nullptr;
    node** other_ = nullptr;
};

// Each member is compiled, whether called or not.
void use_all(list& l) {
    node* out = nullptr;
    (void)l.first();
    (void)l.first_key();
    (void)l.made();
    (void)l.through_a_helper();
    l.global();
    l.unmarked_field();
    l.own_unmarked_field();
    l.heap();
    l.out_parameter(&out);
    l.integer();
    l.neighbour();
    l.interior();
    l.assembly();
    l.varargs();
}

// The field itself.
node** where = nullptr;
struct holder {
    node* one OBASE_GUIDED = nullptr;
    std::uint64_t beside = 0;
};
extern "C" void fill(node** link);
OBASE_ENTRY void field_kept(holder& h) {
    where = &h.one; // expected-error {{the address of a marked field is kept}}
}
OBASE_ENTRY void field_passed(holder& h) {
    fill(&h.one); // expected-error {{the address of a marked field is passed to code that is not}}
}
OBASE_ENTRY void field_or_variable(holder& h, bool first) {
    node* local = nullptr;
    node** link = first ? &h.one : &local;
    *link = nullptr; // expected-error@-1 {{may be the address of a marked field or of something else}}
}
OBASE_ENTRY void field_as_bytes(holder& h, const holder& from) {
    __builtin_memcpy(&h.one, &from.one, sizeof h); // expected-error {{copied or filled as bytes}}
}
OBASE_ENTRY void field_as_number(holder& h) {
    // expected-error@+1 {{accessed as something else than a pointer}}
    *reinterpret_cast<std::uint32_t*>(&h.one) = 0;
}
