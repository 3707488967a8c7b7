// SPDX-License-Identifier: MIT
#include "crestdb/server/collections.hpp"

#include <bit>
#include <cstdlib>
#include <random>

namespace crestdb::server {

namespace {

auto named(std::string_view name) {
    return [name](managed_slot& slot) { return static_cast<record*>(slot.get())->key() == name; };
}

unsigned random_levels() noexcept {
    thread_local std::minstd_rand random{std::random_device{}()};
    // A quarter of the nodes of a level are in the next one.
    const auto bits = static_cast<std::uint32_t>(random());
    const unsigned levels = 1 + static_cast<unsigned>(std::countr_zero(bits | 1u << 30)) / 2;
    return levels;
}

} // namespace

hash_value::~hash_value() {
    fields_.clear(
        [](managed_slot& slot) { record::destroy_part(static_cast<record*>(slot.end())); });
}

managed_slot* hash_value::find_slot(std::string_view field) noexcept {
    return fields_.find(member_hash(field), named(field));
}

record* hash_value::find(std::string_view field) noexcept {
    managed_slot* slot = find_slot(field);
    return slot == nullptr ? nullptr : static_cast<record*>(slot->get());
}

bool hash_value::set(std::string_view field, std::string_view value) {
    if (managed_slot* slot = find_slot(field); slot != nullptr) {
        auto* old = static_cast<record*>(slot->get());
        if (old->value_size() == value.size()) {
            std::memmove(old->value_data(), value.data(), value.size());
            return false;
        }
        record* made = record::make(record_kind::field, field, value);
        record_bytes_ += made->bytes() - old->bytes();
        record::destroy(static_cast<record*>(slot->exchange(made)));
        return false;
    }
    record* made = record::make(record_kind::field, field, value);
    managed_slot* place = nullptr;
    try {
        place = fields_.insert(member_hash(field));
    } catch (...) {
        record::destroy(made);
        throw;
    }
    place->begin(made);
    record_bytes_ += made->bytes();
    return true;
}

bool hash_value::erase(std::string_view field) noexcept {
    return fields_.erase(member_hash(field), named(field), [this](managed_slot& slot) {
        auto* old = static_cast<record*>(slot.end());
        record_bytes_ -= old->bytes();
        record::destroy(old);
    });
}

std::uint64_t sorted_set::head_of(std::string_view text) noexcept {
    std::uint64_t head = 0;
    for (std::size_t i = 0; i < 8; ++i)
        head = head << 8 | (i < text.size() ? static_cast<unsigned char>(text[i]) : 0u);
    return head;
}

sorted_set::sorted_set() : head_(make_node(most_levels)) {
    for (unsigned i = 0; i < most_levels; ++i) head_->links[i] = {nullptr, 0};
    node_bytes_ = node_size(most_levels);
}

sorted_set::~sorted_set() {
    node* n = first();
    while (n != nullptr) {
        node* const next = n->next();
        record::destroy_part(static_cast<record*>(n->member.end()));
        std::free(n);
        n = next;
    }
    std::free(head_);
}

std::size_t sorted_set::node_size(unsigned levels) noexcept {
    return offsetof(node, links) + levels * sizeof(link);
}

sorted_set::node* sorted_set::make_node(unsigned levels) {
    auto* made = static_cast<node*>(std::malloc(std::max(sizeof(node), node_size(levels))));
    if (made == nullptr) throw std::bad_alloc();
    made->levels = levels;
    made->back = nullptr;
    return made;
}

bool sorted_set::comes_before(node& a, double score, std::uint64_t head,
                              std::string_view member) noexcept {
    if (a.score != score) return a.score < score;
    if (a.head != head) return a.head < head;
    return a.name() < member;
}

sorted_set::node* sorted_set::find(std::string_view member) noexcept {
    node_place* place =
        by_name_.find(member_hash(member), [&](node_place& p) { return p.n->name() == member; });
    return place == nullptr ? nullptr : place->n;
}

void sorted_set::link_in(node* n, std::string_view member) noexcept {
    node* before[most_levels];
    std::size_t position[most_levels];
    node* at = head_;
    for (unsigned level = levels_; level-- > 0;) {
        position[level] = level + 1 == levels_ ? 0 : position[level + 1];
        while (at->links[level].next != nullptr &&
               comes_before(*at->links[level].next, n->score, n->head, member)) {
            position[level] += at->links[level].span;
            at = at->links[level].next;
        }
        before[level] = at;
    }
    // Here size() counts n already if it is linked in again, and in insert() too: the members of the
    // list without n are one fewer.
    const std::size_t others = size() - 1;
    for (; levels_ < n->levels; ++levels_) {
        before[levels_] = head_;
        position[levels_] = 0;
        head_->links[levels_] = {nullptr, others};
    }
    for (unsigned level = 0; level < n->levels; ++level) {
        link& from = before[level]->links[level];
        const std::size_t passed = position[0] - position[level];
        n->links[level] = {from.next, from.span - passed};
        from = {n, passed + 1};
    }
    for (unsigned level = n->levels; level < levels_; ++level) ++before[level]->links[level].span;
    n->back = before[0] == head_ ? nullptr : before[0];
    if (n->next() != nullptr)
        n->next()->back = n;
    else
        last_ = n;
}

void sorted_set::unlink(node* n) noexcept {
    const std::string_view member = n->name();
    node* at = head_;
    for (unsigned level = levels_; level-- > 0;) {
        while (at->links[level].next != nullptr && at->links[level].next != n &&
               comes_before(*at->links[level].next, n->score, n->head, member))
            at = at->links[level].next;
        link& from = at->links[level];
        if (from.next == n)
            from = {n->links[level].next, from.span + n->links[level].span - 1};
        else
            --from.span;
    }
    if (n->next() != nullptr)
        n->next()->back = n->back;
    else
        last_ = n->back;
    while (levels_ > 1 && head_->links[levels_ - 1].next == nullptr) --levels_;
}

void sorted_set::insert(std::string_view member, double score) {
    record* made = record::make(record_kind::member, member, {});
    node* n = nullptr;
    node_place* place = nullptr;
    const std::uint32_t hash = member_hash(member);
    try {
        n = make_node(random_levels());
        place = by_name_.insert(hash);
    } catch (...) {
        std::free(n);
        record::destroy(made);
        throw;
    }
    n->score = score;
    n->head = head_of(member);
    n->hash = hash;
    n->member.begin(made);
    place->n = n;
    node_bytes_ += node_size(n->levels) + made->bytes();
    link_in(n, member);
}

void sorted_set::set_score(node* n, double score) noexcept {
    if (n->score == score) return;
    // Where the order stays there is nothing to link.
    const bool after_back = n->back == nullptr || n->back->score < score;
    const bool before_next = n->next() == nullptr || score < n->next()->score;
    if (after_back && before_next) {
        n->score = score;
        return;
    }
    unlink(n);
    n->score = score;
    link_in(n, n->name());
}

void sorted_set::erase(node* n) noexcept {
    unlink(n);
    by_name_.erase(n->hash, [&](node_place& p) { return p.n == n; }, [](node_place&) {});
    auto* member = static_cast<record*>(n->member.end());
    node_bytes_ -= node_size(n->levels) + member->bytes();
    record::destroy(member);
    std::free(n);
}

std::size_t sorted_set::rank(node* n) noexcept {
    const std::string_view member = n->name();
    std::size_t passed = 0;
    node* at = head_;
    for (unsigned level = levels_; level-- > 0;) {
        while (at->links[level].next != nullptr && at->links[level].next != n &&
               comes_before(*at->links[level].next, n->score, n->head, member)) {
            passed += at->links[level].span;
            at = at->links[level].next;
        }
        if (at->links[level].next == n) return passed + at->links[level].span - 1;
    }
    return passed;
}

sorted_set::node* sorted_set::at(std::size_t rank) const noexcept {
    std::size_t left = rank + 1;
    node* at = head_;
    for (unsigned level = levels_; level-- > 0;) {
        while (at->links[level].next != nullptr && at->links[level].span <= left) {
            left -= at->links[level].span;
            at = at->links[level].next;
        }
        if (left == 0) return at;
    }
    return at;
}

} // namespace crestdb::server
