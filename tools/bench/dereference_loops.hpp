// SPDX-License-Identifier: MIT
//
// The loops that are measured and counted: the same body for each way to get from a word to an
// address. Shared by `obase bench guide` and the golden instruction counts.
//
// All ways read the same memory: a touched guide holds the plain address (obase/word/arming.hpp),
// so a plain pointer, a pointer behind a mask and a guide are three readings of one word. The plain
// reading is an ordinary, neither atomic nor volatile, load of a T*: memcpy of a pointer's size
// compiles to just that.
//
// What keeps the compiler honest: each loop is a function of its own that is never inlined, its
// result is used, and it depends on memory that the compiler cannot see through. Files that include
// this one are compiled without vectorization and unrolling (obase_measured_loops in
// tools/CMakeLists.txt): g++ 12 would vectorize the additions behind plain pointers and not those
// behind guides, and the comparison would be about additions.
#pragma once

#include <obase/guide.hpp>
#include <obase/plain.hpp>
#include <obase/relocatable.hpp>
#include <obase/scope.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace obase::tools {

// An object with a guide in it. `Bytes` in all.
template <class Protocol, std::size_t Bytes>
struct link_node {
    guide<link_node, Protocol> next;
    std::uint64_t value = 0;
    unsigned char rest[Bytes - 16] = {};
};

} // namespace obase::tools

template <class Protocol, std::size_t Bytes>
struct obase::is_relocatable<obase::tools::link_node<Protocol, Bytes>> : std::true_type {};

namespace obase::tools {

// What a program without obase does.
struct through_pointer {
    template <class T, class Protocol>
    static T* get(const guide<T, Protocol>& g) noexcept {
        static_assert(sizeof(guide<T, Protocol>) == sizeof(T*));
        T* address;
        std::memcpy(&address, static_cast<const void*>(&g), sizeof address);
        return address;
    }
};

// What a tagged pointer would cost that has to be masked each time.
struct through_mask {
    template <class T, class Protocol>
    static T* get(const guide<T, Protocol>& g) noexcept {
        std::uint64_t word;
        std::memcpy(&word, static_cast<const void*>(&g), sizeof word);
        return reinterpret_cast<T*>(word & word::arming::address_mask);
    }
};

struct through_guide {
    template <class T, class Protocol>
    static T* get(const guide<T, Protocol>& g) noexcept {
        return g.get();
    }
};

struct no_scope {
    no_scope() noexcept {}
    ~no_scope() {}
};

// Latency: each address comes out of the object before. `Scope` is opened around every step.
template <class Way, class Node, class Scope = no_scope>
[[gnu::noinline, gnu::aligned(64)]] const Node* chase(const Node* at, std::size_t steps) noexcept {
    do {
        const Scope one_operation;
        at = Way::get(at->next);
    } while (--steps != 0);
    return at;
}

// Throughput: the addresses are known from the start, loads overlap as far as the processor can.
template <class Way, class Node, class Protocol, class Scope = no_scope>
[[gnu::noinline, gnu::aligned(64)]] std::uint64_t sum(const guide<Node, Protocol>* guides,
                                                      std::size_t count) noexcept {
    std::uint64_t total = 0;
    const guide<Node, Protocol>* const end = guides + count;
    do {
        const Scope one_operation;
        total += Way::get(*guides)->value;
    } while (++guides != end);
    return total;
}

} // namespace obase::tools
