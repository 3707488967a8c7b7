// SPDX-License-Identifier: MIT
//
// What keys of type hash and sorted set hold: collections whose fields and members are managed
// objects of their own, each with a slot and so with a temperature of its own. A hash with a million
// fields of which a thousand are asked for keeps a thousand in DRAM.
//
//   hash_value   a scan_table of slots; a record holds a field and its value
//   sorted_set   a scan_table by member and a skip list by (score, member), with the number of
//                members each link passes, so that a rank is found in O(log n) (Pugh 1990). The nodes
//                stay in ordinary memory, with the score and the first 8 bytes of the member, so that
//                a search rarely touches members it does not return.
//
// Threads: none of their own; the caller's lock. Errors: std::bad_alloc, nothing changed. In a scope.
#pragma once

#include "crestdb/server/key_hash.hpp"
#include "crestdb/server/record.hpp"
#include "crestdb/server/scan_table.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace crestdb::server {

class hash_value {
  public:
    hash_value() = default;
    hash_value(const hash_value&) = delete;
    hash_value& operator=(const hash_value&) = delete;
    ~hash_value();

    std::size_t size() const noexcept { return fields_.size(); }
    // Memory of the table and of the fields.
    std::size_t bytes() const noexcept { return sizeof *this + fields_.bytes() + record_bytes_; }

    // The field's record, null if there is none.
    record* find(std::string_view field) noexcept;
    managed_slot* find_slot(std::string_view field) noexcept;
    // A slot with the field's hash, without looking at its field.
    managed_slot* slot_of_hash(std::string_view field) noexcept {
        return fields_.find(member_hash(field), [](managed_slot&) { return true; });
    }
    // True: the field is new.
    bool set(std::string_view field, std::string_view value);
    bool erase(std::string_view field) noexcept;

    // Visits all fields; visit(record&).
    template <class Visit>
    void each(Visit&& visit) {
        std::uint32_t cursor = 0;
        do {
            cursor = scan(cursor, visit);
        } while (cursor != 0);
    }
    template <class Visit>
    std::uint32_t scan(std::uint32_t cursor, Visit&& visit) {
        return fields_.scan(cursor, [&](managed_slot& slot, std::uint32_t) {
            visit(*static_cast<record*>(slot.get()));
        });
    }
    // The same without looking at the fields; visit(managed_slot&).
    template <class Visit>
    std::uint32_t scan_slots(std::uint32_t cursor, Visit&& visit) {
        return fields_.scan(cursor, [&](managed_slot& slot, std::uint32_t) { visit(slot); });
    }
    template <class Visit>
    void sample_slots(std::uint32_t random, std::size_t wanted, Visit&& visit) {
        fields_.sample(random, wanted, [&](managed_slot& slot, std::uint32_t) { visit(slot); });
    }

  private:
    scan_table<managed_slot> fields_;
    std::size_t record_bytes_ = 0;
};

class sorted_set {
  public:
    static constexpr unsigned most_levels = 32;

    struct node;
    struct link {
        node* next;
        std::size_t
            span; // members from this node to next, that one included; to the end without next
    };
    struct node {
        managed_slot member;
        double score;
        std::uint64_t head; // first 8 bytes of the member, the first one highest
        node* back;         // null at the first
        std::uint32_t hash;
        std::uint32_t levels;
        link links[1]; // `levels` of them

        std::string_view name() noexcept { return static_cast<record*>(member.get())->key(); }
        node* next() const noexcept { return links[0].next; }
    };
    struct node_place {
        node* n;
        void begin_from(node_place& from) noexcept { n = from.n; }
    };

    sorted_set();
    sorted_set(const sorted_set&) = delete;
    sorted_set& operator=(const sorted_set&) = delete;
    ~sorted_set();

    std::size_t size() const noexcept { return by_name_.size(); }
    std::size_t bytes() const noexcept { return sizeof *this + by_name_.bytes() + node_bytes_; }

    node* find(std::string_view member) noexcept;
    // Precondition: the member is not there.
    void insert(std::string_view member, double score);
    void set_score(node* n, double score) noexcept;
    void erase(node* n) noexcept;

    node* first() const noexcept { return head_->links[0].next; }
    node* last() const noexcept { return last_; }
    // 0 is the first.
    std::size_t rank(node* n) noexcept;
    // Precondition: rank < size().
    node* at(std::size_t rank) const noexcept;
    // The first node for which before(node) does not hold; null if it holds for all. before() must
    // hold for a first part of the set and for no node behind that.
    template <class Before>
    node* first_not(Before&& before) noexcept {
        node* at = head_;
        for (unsigned level = levels_; level-- > 0;)
            while (at->links[level].next != nullptr && before(*at->links[level].next))
                at = at->links[level].next;
        return at->links[0].next;
    }

    // How many members come before that node.
    template <class Before>
    std::size_t count_before(Before&& before) noexcept {
        std::size_t passed = 0;
        node* at = head_;
        for (unsigned level = levels_; level-- > 0;)
            while (at->links[level].next != nullptr && before(*at->links[level].next)) {
                passed += at->links[level].span;
                at = at->links[level].next;
            }
        return passed;
    }
    // Goes the way of a search for (score, member), or for that node `itself`. look(managed_slot&) says
    // whether a member may be compared by its name, which is asked where score and head are the same.
    // False: one may not.
    template <class Look>
    bool look_on_way(double score, std::string_view member, const node* itself, Look&& look) {
        const std::uint64_t head = head_of(member);
        node* at = head_;
        for (unsigned level = levels_; level-- > 0;)
            for (node* next = at->links[level].next; next != nullptr && next != itself;
                 next = at->links[level].next) {
                if (next->score == score && next->head == head && !look(next->member)) return false;
                if (!comes_before(*next, score, head, member)) break;
                at = next;
            }
        return true;
    }

    template <class Visit>
    std::uint32_t scan(std::uint32_t cursor, Visit&& visit) {
        return by_name_.scan(cursor, [&](node_place& place, std::uint32_t) { visit(*place.n); });
    }
    template <class Visit>
    std::uint32_t scan_slots(std::uint32_t cursor, Visit&& visit) {
        return by_name_.scan(cursor,
                             [&](node_place& place, std::uint32_t) { visit(place.n->member); });
    }
    // A slot whose member has that hash, and its node, without looking at the member.
    node* node_of_hash(std::string_view member) noexcept {
        node_place* place = by_name_.find(member_hash(member), [](node_place&) { return true; });
        return place == nullptr ? nullptr : place->n;
    }
    template <class Visit>
    void sample_slots(std::uint32_t random, std::size_t wanted, Visit&& visit) {
        by_name_.sample(random, wanted,
                        [&](node_place& place, std::uint32_t) { visit(place.n->member); });
    }

  private:
    static std::uint64_t head_of(std::string_view text) noexcept;
    static bool comes_before(node& a, double score, std::uint64_t head,
                             std::string_view member) noexcept;
    static node* make_node(unsigned levels);
    static std::size_t node_size(unsigned levels) noexcept;
    void unlink(node* n) noexcept;
    void link_in(node* n, std::string_view member) noexcept;

    scan_table<node_place> by_name_;
    node* head_;
    node* last_ = nullptr;
    unsigned levels_ = 1;
    std::size_t node_bytes_ = 0;
};

} // namespace crestdb::server
