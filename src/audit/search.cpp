// SPDX-License-Identifier: MIT
//
// The audit's search for addresses of objects outside of slots: in the variables of the program and its libraries, and
// in anonymous memory, which is malloc's for the most part. Conservative: any aligned word that has the value counts,
// whatever it is, so what is found is suspected only, and only if it still has the value when its object has
// moved twice. A block that malloc has back may look so.
#include "audit/audit.hpp"

#include "audit/places.hpp"
#include "os/own_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace obase::audit {

namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20; // in one search
constexpr std::uint64_t low_bits = 7;                     // that programs put into addresses

void* address_of(std::uint64_t number) noexcept { return reinterpret_cast<void*>(number); }

void describe(std::uint64_t at, const void* stack, char* text, std::size_t room) noexcept {
    char name[100];
    std::size_t offset = 0;
    if (find_variable(address_of(at), name, sizeof name, &offset))
        std::snprintf(text, room, "variable %s, offset %zu", name, offset);
    else if (stack != nullptr &&
             at - reinterpret_cast<std::uint64_t>(stack) < (std::uint64_t{8} << 20))
        std::snprintf(text, room, "stack of the thread");
    else
        std::snprintf(text, room, "memory at %p", address_of(at));
}

// use(address, word) for each aligned word of pages that hold something, up to `left` bytes of them. `own_end` says where
// memory that is left out ends, 0: it is not. Page by page, because the kernel lists neighbours as one mapping. Returns
// where it has stopped.
template <class OwnEnd, class Use>
std::uintptr_t for_each_word(os::page_states& pages, std::uintptr_t begin, std::uintptr_t end,
                             std::size_t& left, OwnEnd&& own_end, Use&& use) noexcept {
    std::uint64_t words[512];
    while (begin < end && left != 0) {
        if (const std::uintptr_t behind = own_end(begin); behind != 0) {
            begin = heap::round_up(behind, sizeof *words);
            continue;
        }
        if (const std::uintptr_t touched = pages.first_touched(begin, end); touched != begin) {
            begin = touched;
            continue;
        }
        const std::size_t wanted =
            std::min<std::size_t>(sizeof words - begin % sizeof words, end - begin);
        const std::size_t got = os::read_own_memory(begin, words, wanted);
        for (std::size_t i = 0; i < got / 8; ++i) use(begin + 8 * i, words[i]);
        begin += wanted;
        left -= std::min(left, wanted);
    }
    return begin;
}

} // namespace

// Memory of obase is not searched: the records, the objects themselves (which are looked at when they move), what the
// calling function has on its stack. Nor are stacks of threads, which have garbage of all ages.
std::uintptr_t auditor::own_end(std::uintptr_t at) noexcept {
    std::uintptr_t end = std::max(arenas_.own_end(at), places_.own_end(at));
    const auto in = [&](const void* begin, std::size_t bytes) {
        const auto first = reinterpret_cast<std::uintptr_t>(begin);
        if (at - first < bytes) end = std::max(end, first + bytes);
    };
    in(this, sizeof *this);
    for (const directory::leaf* l : slots_.leaves())
        in(l, sizeof *l); // has the address where 16 MiB begin
    in(mover_.candidates().begin(), mover_.candidates().capacity() * sizeof(mover::candidate));
    registry_.for_each_record([&](const thread_record& r) {
        in(&r, sizeof r);
        if (r.place.pointer != 0 && at >= r.place.stack_low && at < r.place.stack_high)
            end = std::max<std::uintptr_t>(end, r.place.stack_high);
    });
    return end;
}

struct auditor::searched {
    auditor& self;
    os::page_states pages;
    bool variables = true;   // or other memory
    std::uintptr_t from = 0; // and only what lies here
    std::uintptr_t to = ~std::uintptr_t{0};
    std::size_t left = most_bytes;
};

// Variables each time; of other memory as much as there is room for, further on each time.
void auditor::search() noexcept {
    ++totals_.searches;
    follow_words();
    slots_.refresh(); // moving may have made leaves, which are not to be searched
    searched all{*this, {}};
    os::for_each_writable_mapping(&auditor::search_mapping, &all);
    all.variables = false;
    all.left = most_bytes;
    all.from = search_from_;
    os::for_each_writable_mapping(&auditor::search_mapping, &all);
    if (all.left == 0) return;
    all.to = all.from;
    all.from = search_from_ = 0;
    os::for_each_writable_mapping(&auditor::search_mapping, &all);
}

void auditor::search_mapping(void* p, const os::own_mapping& m) {
    auto& in = *static_cast<searched*>(p);
    auditor& a = in.self;
    if (m.is_file != in.variables || std::strcmp(m.name, "[stack]") == 0) return;
    const std::uintptr_t begin = std::max(m.begin, in.from), end = std::min(m.end, in.to);
    if (begin >= end || in.left == 0) return;
    const std::uintptr_t stopped = for_each_word(
        in.pages, begin, end, in.left, [&a](std::uintptr_t at) { return a.own_end(at); },
        [&a](std::uintptr_t at, std::uint64_t word) {
            const std::uint64_t object = word & ~low_bits;
            if (!a.arenas_.contains(address_of(object)) || object % arenas::grain != 0) return;
            // Where all objects move at each end the object has moved since.
            const life state = a.arenas_.at(address_of(object)).state;
            if (state != life::live && state != life::moved) return;
            if (a.word_count_ == most_words || a.slots_.test(address_of(at))) return;
            if (a.own_end(at) != 0) return; // begins in the midst of a page
            const auto same = [at](const word_entry& w) { return w.at == at; };
            if (std::any_of(a.words_, a.words_ + a.word_count_, same)) return;
            a.words_[a.word_count_++] = {at, word, object, 0};
        });
    if (!in.variables && in.left == 0) a.search_from_ = stopped;
}

// Words that have been found before: those that have changed are forgotten.
void auditor::follow_words() noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < word_count_; ++i) {
        word_entry w = words_[i];
        std::uint64_t now = 0;
        if (os::read_own_memory(w.at, &now, sizeof now) != sizeof now || now != w.value) continue;
        if (slots_.test(address_of(w.at))) continue;
        const record* r = &arenas_.at(address_of(w.object));
        while (r->state == life::moved && w.moves < 2) {
            const void* const next = arenas_.moved_to(*r);
            if (next == nullptr) break;
            ++w.moves;
            w.object = reinterpret_cast<std::uint64_t>(next);
            r = &arenas_.at(next);
        }
        if (w.moves >= 2) {
            finding f;
            f.what = kind::kept_address;
            f.object = w.value & ~low_bits;
            f.known = arenas_.at(address_of(f.object));
            describe(w.at, nullptr, f.where, sizeof f.where);
            findings_.add(f);
            continue;
        }
        if (r->state == life::live) words_[kept++] = w;
    }
    word_count_ = kept;
}

// Who still has an address in [begin, begin + bytes)? Variables first, then other memory, then the thread's stack.
void auditor::find_holders(const char* begin, std::size_t bytes, const void* stack, char* text,
                           std::size_t room) noexcept {
    struct holders {
        auditor& self;
        std::uint64_t begin, bytes, stack;
        os::page_states pages;
        bool first_ones = true; // variables and the stack, or the rest
        std::uint64_t variable = 0, memory = 0, frame = 0;
        std::size_t left = most_bytes;
    } found{*this,
            reinterpret_cast<std::uint64_t>(begin),
            bytes,
            reinterpret_cast<std::uint64_t>(stack),
            {}};
    const auto look_at = [](void* p, const os::own_mapping& m) {
        auto& in = *static_cast<holders*>(p);
        const bool is_stack = in.stack >= m.begin && in.stack < m.end;
        if ((is_stack || m.is_file) != in.first_ones) return;
        const auto own = [&](std::uintptr_t at) { return is_stack ? 0 : in.self.own_end(at); };
        for_each_word(in.pages, is_stack ? in.stack & ~std::uint64_t{7} : m.begin, m.end, in.left,
                      own, [&](std::uintptr_t at, std::uint64_t word) {
                          if (word - in.begin >= in.bytes) return;
                          std::uint64_t& first =
                              is_stack ? in.frame : (m.is_file ? in.variable : in.memory);
                          if (first == 0) first = at;
                      });
    };
    os::for_each_writable_mapping(look_at, &found);
    found.first_ones = false;
    found.left = most_bytes;
    os::for_each_writable_mapping(look_at, &found);
    const std::uint64_t at = found.variable != 0 ? found.variable
                             : found.memory != 0 ? found.memory
                                                 : found.frame;
    if (at != 0) describe(at, stack, text, room);
}

} // namespace obase::audit
